//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/proof"
)

// add starts a further member. Every third is a static one.
func (r *run) add() error {
	m := r.Add()
	m.Policy, m.Counted = dynamicPolicy, true
	if r.added++; r.added%3 == 1 {
		m.Policy = staticPolicy
	}
	if err := r.plant(m); err != nil {
		return err
	}
	return m.Start()
}

// tendUntil looks after the members and the feed until what is waited for is
// there.
func (r *run) tendUntil(ctx context.Context, there func() bool) error {
	return r.Until(ctx, func() (bool, error) { return there(), r.feed.Err() })
}

// tendUntilTime looks after them until so late.
func (r *run) tendUntilTime(ctx context.Context, until time.Time) error {
	return r.tendUntil(ctx, func() bool { return !time.Now().Before(until) })
}

// tendSome looks after them until what is waited for is there, or for so long.
func (r *run) tendSome(ctx context.Context, long time.Duration, there func() bool) error {
	until := time.Now().Add(long)
	return r.tendUntil(ctx, func() bool { return there() || !time.Now().Before(until) })
}

// next is whose turn it is.
func (r *run) next() *proof.Member {
	r.turn++
	return r.Members[r.turn%len(r.Members)]
}

// maxHunt is how long a member with an open transaction is looked for.
const maxHunt = 90 * time.Second

// minHunt is how long members are met at random moments only.
const minHunt = 15 * time.Second

// maxCorner is how long the fleet stands still for a member that may have
// nothing to do.
const maxCorner = 5 * time.Second

// catch freezes one member after the other until one has begun a transaction that is
// open, and returns it frozen. When none is met at random
// moments for long, one is cornered.
func (r *run) catch(ctx context.Context) (*proof.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, maxHunt)
	defer cancel()
	began := time.Now()
	for ctx.Err() == nil {
		if err := r.Tend(); err != nil {
			return nil, err
		}
		m := r.next()
		for range 10 {
			processes.Pause(ctx, time.Duration(r.random.Int64N(int64(5*time.Millisecond))))
			err := m.Freeze()
			if errors.Is(err, processes.ErrEnded) {
				break // tend starts it again
			}
			if err != nil {
				return nil, err
			}
			if open, err := r.Activity.Settled(ctx, m.Name, r.opening()); err == nil && open {
				return m, nil
			}
			if err := m.Thaw(); err != nil {
				return nil, err
			}
		}
		if time.Since(began) > minHunt && r.cornered(ctx, m) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("for %v no member was met with an open transaction", maxHunt)
}

// opening is what the transactions begin with that are meant: of the inbox, those with
// claims.
func (r *run) opening() processes.Opening {
	if r.Inbox {
		return processes.Claiming()
	}
	return processes.Marking()
}

// cornered tries to freeze a member where its transaction opens; after a failure
// it runs, or has ended and is started again. A plain loop has no guard to wait
// for.
func (r *run) cornered(ctx context.Context, m *proof.Member) bool {
	if r.plain() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxCorner)
	defer cancel()
	return r.Activity.Corner(ctx, m.Process, m.Name, r.opening()) == nil
}

// end has a member drain and end. One that can't leave the group in time drains
// too, says so and fails; a plain loop fails as it likes.
func (r *run) end(m *proof.Member) error {
	err := m.End()
	if err == nil || r.plain() {
		return nil
	}
	if _, drained := m.Counts(proof.Consumer); drained == nil && m.Status.ExitStatus() == 1 {
		r.Say("%s drained and ended with 1: %s", m.Name, m.LastWords())
		r.ledger.Unleft++
		return nil
	}
	return fmt.Errorf("%s: %w", m.Name, err)
}

// endAll has the members drain and end.
func (r *run) endAll() (err error) {
	for _, m := range r.Members {
		if err := r.end(m); err != nil {
			return err
		}
	}
	r.Over()
	r.ledger.Delivered = r.Delivered()
	if r.frozen != nil {
		r.ledger.Frozen, err = r.frozen.Stopped()
	}
	return err
}
