//go:build unix

package charge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/pgxstore"
)

// Command is the first argument with which a program runs as a process of this fault test. With this argument, the
// program must call Live with the second argument.
const Command = "charge-process"

// role is the task of a process.
type role string

// The roles.
const (
	theProvider role = "provider"
	aConsumer   role = "consumer"
	aSender     role = "sender"
	aNaive      role = "naive"
)

// order is the configuration of a process.
type order struct {
	Role     role
	Number   int // number of the process among the processes with the same role
	Provider provider.Order
	Brokers  []string
	Database string
	Proof    Proof
	Traps    []trap
}

// The points in a sender's work that package faults does not have.
const (
	beforeCall faults.Point = "BeforeCall" // before the call
	afterCall  faults.Point = "AfterCall"  // after the answer, before it is recorded
)

// trap is a point at which a process kills or freezes itself.
type trap struct {
	Point  faults.Point
	Freeze bool
}

// Live runs the process of an order until SIGTERM.
func Live(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("the order of the process: %w", err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if o.Role == theProvider {
		return provider.Serve(o.Provider)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if o.Role == aNaive {
		return o.naive(ctx)
	}
	pool, err := pgxpool.New(ctx, o.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	traps := &traps{left: o.Traps, armed: time.Now().Add(untilArmed)}
	switch o.Role {
	case aConsumer:
		return o.consume(ctx, store, traps)
	case aSender:
		return o.send(ctx, store, traps)
	}
	return errors.New("unknown role: " + string(o.Role))
}

// The time after which a process arms its first trap, and the pause before each further trap.
const untilArmed = 500 * time.Millisecond

// traps contains the traps of a process. The process springs one trap after the other.
type traps struct {
	mutex sync.Mutex // guards the fields below
	left  []trap
	armed time.Time
}

// onPoint springs the current trap if the trap is for the point p. If the trap kills the process, the method does
// not return.
func (t *traps) onPoint(p faults.Point, _ int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.left) == 0 || t.left[0].Point != p || time.Now().Before(t.armed) {
		return
	}
	with := syscall.SIGKILL
	if t.left[0].Freeze {
		with = syscall.SIGSTOP
	}
	t.left = t.left[1:]
	_ = syscall.Kill(os.Getpid(), with)
	t.armed = time.Now().Add(untilArmed)
}

// losesAnswer reports whether the caller of the next End must not get the store's answer. If the answer is lost,
// the process passes the point for lost replies.
func (t *traps) losesAnswer() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.left) > 0 && t.left[0].Point == faults.CommitReplyLost && !time.Now().Before(t.armed)
}

// client returns a client of the provider. The client's timeout is shorter than the handler's timeout, so
// that the handler can still return a result after the client gave up.
func (o *order) client() provider.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}
	return provider.Client{URL: "http://" + o.Provider.Address, HTTP: &http.Client{Transport: transport, Timeout: o.Proof.Timeout * 3 / 4}}
}

// The number of concurrent calls of a process.
const workers = 32
