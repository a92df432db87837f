//go:build unix

package dead

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// Points before, during and after the copy of a dead letter, in addition to the points of the consumer. At the point
// duringCopy, the broker is frozen while the record is sent.
const (
	beforeCopy = "BeforeCopy"
	duringCopy = "DuringCopy"
	afterCopy  = "AfterCopy"
)

// order contains the settings with which a child process runs its consumer.
type order struct {
	Brokers                 []string
	Topic, Dead, Group, DSN string
	// Death is the point at which the process kills itself. If Death is empty, the process works to the end.
	Death string
	// After is the number of dead letters that the process must have written before it kills itself.
	After, Workers int
}

func TestMain(m *testing.M) { children.Main(m, runChild) }

// runChild runs the consumer that kills itself.
func runChild(o order) error {
	inner, err := kafka.New(o.source())
	if err != nil {
		return err
	}
	m := &killingSource{Source: inner, order: o}
	if o.Death == string(faults.CommitReplyLost) {
		proxy, err := pgproxy.New(o.DSN)
		if err != nil {
			return err
		}
		defer proxy.Close()
		proxy.CutReply(func(message pgproxy.Message) bool { return pgproxy.Commit(message) && m.isArmed() })
		o.DSN = proxy.DSN()
	}
	c := policy(m)
	c.Workers, c.IdleExit = o.Workers, 2*time.Second
	plan := faults.Plan{At: func(p faults.Point, _ int) { m.killAt(string(p)) }}
	consumer, closePool, err := workload.Drivers()[1].Open(workload.Options{DSN: o.DSN, Connections: o.Workers + 1, Handler: handle, Config: c, Plan: plan})
	if err != nil {
		return err
	}
	defer closePool()
	if err := consumer.Run(context.Background()); err != nil || o.Death == "" {
		return err
	}
	return fmt.Errorf("the consumer was to die at %s and came to the end of the topic", o.Death)
}

func (o order) source() kafka.Config {
	return kafka.Config{Brokers: o.Brokers, Topics: []string{o.Topic}, Group: o.Group, DeadLetters: o.Dead,
		// With the same instance id, the next process need not wait until the dead process's session ends.
		Instance: "mortal", Logger: slog.New(slog.DiscardHandler)}
}

// policy returns a configuration in which each kind of failure can end as a dead letter.
func policy(src source.Source) consumer.Config {
	c := workload.Config(src)
	c.Lanes, c.Batch.MaxSize, c.MaxUnacked.Messages = consumer.LanesPartition, 4, 8
	c.Retry = consumer.RetryPolicy{MaxAttempts: attempts, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond, OnExhausted: consumer.ActionDeadLetter}
	c.OnConflict, c.OnBadIdentity, c.OnPrecondition = consumer.ActionDeadLetter, consumer.ActionDeadLetter, consumer.ActionDeadLetter
	return c
}

// The number of failed handler runs after which a message becomes a dead letter with the reason exhausted.
const attempts = 3

var errBad = errors.New("no such account")

// handle writes the effect of good messages, and fails for other messages.
func handle(ctx context.Context, exec workload.Exec, m *semel.Message) error {
	switch string(m.Body) {
	case permanent:
		return semel.Permanent(errBad)
	case exhausting:
		return errBad
	case unmet:
		return semel.PreconditionFailed("no account to change")
	}
	return workload.Effect("child")(ctx, exec, m)
}

// killingSource is a source that kills its process before, during or after the copy of a dead letter.
type killingSource struct {
	*kafka.Source
	order  order
	copies atomic.Int64
}

func (m *killingSource) isArmed() bool { return m.copies.Load() >= int64(m.order.After) }

func (m *killingSource) killAt(point string) {
	if point == m.order.Death && m.isArmed() {
		die()
	}
}

// Settle kills the process at the point order.Death, or passes the acks and nacks to the source.
func (m *killingSource) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	letters := 0
	for i := range all {
		if all[i].Kind == semel.DeadLetter {
			letters++
		}
	}
	if letters == 0 {
		return m.Source.Settle(ctx, all)
	}
	m.killAt(beforeCopy)
	if m.order.Death == duringCopy && m.isArmed() {
		m.dieCopying(ctx, all)
	}
	left, err := m.Source.Settle(ctx, all)
	m.copies.Add(int64(letters - len(left)))
	m.killAt(afterCopy)
	return left, err
}

// dieCopying reports that a copy is about to be sent, and waits until the broker is frozen. After this, dieCopying
// sends the copy and kills the process without waiting for an answer.
func (m *killingSource) dieCopying(ctx context.Context, all []source.Settlement) {
	fmt.Println("copying")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := m.Source.Settle(ctx, all)
	if err == nil {
		panic("the frozen broker answered")
	}
	die()
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
