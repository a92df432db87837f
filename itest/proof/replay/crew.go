//go:build unix

package replay

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/proof"
)

// until looks after the members and the feed until it is so.
func (r *run) until(ctx context.Context, so func() bool) error {
	return r.Until(ctx, func() (bool, error) { return so(), r.feed.Err() })
}

// untilTime looks after them until so late.
func (r *run) untilTime(ctx context.Context, until time.Time) error {
	return r.until(ctx, func() bool { return !time.Now().Before(until) })
}

// patiently waits until it is so, or for long; it says so then.
func (r *run) patiently(ctx context.Context, otherwise string, so func(context.Context) bool) error {
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := r.until(most, func() bool { return so(most) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.Say("after %v %s", patience, otherwise)
		return nil
	}
	return err
}

// maxHunt is how long a member with an open transaction is looked for.
const maxHunt = 5 * time.Second

// killMember kills a member, in an open transaction where one is met, and starts it again.
func (r *run) killMember(ctx context.Context) error {
	m, open, err := r.catch(ctx)
	if err != nil {
		return err
	}
	if err := r.Kill(m, open); err != nil {
		return err
	}
	return m.Start()
}

// catch freezes one member after the other until one has written in a transaction that is
// open, and returns it frozen; or some time later any of them, and whether it has.
func (r *run) catch(ctx context.Context) (m *proof.Member, open bool, err error) {
	began := time.Now()
	for {
		if err := r.Tend(); err != nil {
			return nil, false, err
		}
		r.turn++
		m = r.Members[r.turn%len(r.Members)]
		for range 5 {
			processes.Pause(ctx, time.Duration(r.random.Int64N(int64(5*time.Millisecond))))
			err := m.Freeze()
			if errors.Is(err, processes.ErrEnded) {
				break // Tend starts it again
			}
			if err != nil {
				return nil, false, err
			}
			open, err := r.Activity.Settled(ctx, m.Name, processes.Marking())
			if err == nil && open || time.Since(began) > maxHunt {
				return m, open, nil
			}
			if err := m.Thaw(); err != nil {
				return nil, false, err
			}
		}
	}
}

// fail publishes the first part while members are killed.
func (r *run) fail(ctx context.Context) error {
	if err := r.publish(ctx, 0, untilRepair, r.Publish); err != nil {
		return err
	}
	var events proof.Schedule
	events.Spread(0.1, 0.6, r.Kills, r.killMember)
	began := time.Now()
	err := events.Run(ctx, func(ctx context.Context, at float64) error {
		return r.untilTime(ctx, began.Add(time.Duration(at*float64(r.Publish))))
	})
	if err != nil {
		return err
	}
	return r.published(ctx)
}
