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

// Command is the first argument of a program that is to be one of the processes of the
// proof: it calls Live.
const Command = "charge-process"

// variable has the order of such a process.
const variable = "SEMEL_CHARGE_ORDER"

// role is what a process does.
type role string

// The roles.
const (
	theProvider role = "provider"
	aConsumer   role = "consumer"
	aSender     role = "sender"
	aNaive      role = "naive"
)

// order is what a process is to do.
type order struct {
	Role     role
	Number   int // among those of its role
	Provider provider.Order
	Brokers  []string
	Database string
	Proof    Proof
	Traps    []trap
}

// Points of a sender beside those of package faults.
const (
	beforeCall faults.Point = "BeforeCall" // it is about to call
	afterCall  faults.Point = "AfterCall"  // it has the answer, and has not said so
)

// trap is a point at which a process kills or freezes itself.
type trap struct {
	Point  faults.Point
	Freeze bool
}

// Live is one of the processes, until SIGTERM.
func Live() error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &o); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
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
	return errors.New("no such role: " + string(o.Role))
}

// untilArmed is after how long a process's trap is set, and the next one.
const untilArmed = 500 * time.Millisecond

// traps are sprung one after the other.
type traps struct {
	mutex sync.Mutex // guards what follows
	left  []trap
	armed time.Time
}

// at springs the trap if it is at this point, and reports whether it was; a process that
// it kills does not return.
func (t *traps) at(p faults.Point, _ int) {
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

// loses reports whether the answer of the store to the next ending is to be lost, after
// which the point of lost replies is passed.
func (t *traps) loses() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.left) > 0 && t.left[0].Point == faults.CommitReplyLost && !time.Now().Before(t.armed)
}

// client speaks to the provider. Its time-out is shorter than that of a handler, which can
// still say what it knows then.
func (o *order) client() provider.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}
	return provider.Client{URL: "http://" + o.Provider.Address, HTTP: &http.Client{Transport: transport, Timeout: o.Proof.Timeout * 3 / 4}}
}

// workers is how many calls a process has under way.
const workers = 32
