package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Retention is how long a consumer's markers and rows are kept. The zero value keeps everything
// for ever.
type Retention struct {
	guard.Guard
	// Keep is how long identities are recognised; 0: for ever. Bodies is how long bodies are kept;
	// 0: as long as the identities. Delay is how late a producer may send a copy, Retries how long
	// all retries of a message take at most.
	Keep, Bodies, Delay, Retries time.Duration
	// IDTime says which time ids carry.
	IDTime identity.IDTime
	// DailyPartitions: the store judges the age of ids.
	DailyPartitions bool
	// Off: nothing is removed.
	Off bool

	// reaped: markers were removed under an earlier policy; LookBack finds that out.
	reaped atomic.Bool
}

// noTime counts as older than what is kept.
var noTime = time.Unix(0, 0)

// JudgeTimes turns the verdicts of fresh marks into store.Old whose messages have no time
// that tells their age, whether something was removed yet or not: with a retention they are
// set aside from the first on, and not from the first day on which something is removed.
func (r *Retention) JudgeTimes(marks []store.Mark, verdicts []store.Verdict) {
	if r.Keep == 0 || r.DailyPartitions { // days are judged by ids
		return
	}
	for i := range verdicts {
		if verdicts[i].Kind == store.Fresh && marks[i].Age.Equal(noTime) {
			verdicts[i].Kind = store.Old
		}
	}
}

// AgeOf returns the time by which a message's age is judged; zero: it is not.
func (r *Retention) AgeOf(p *delivery.Delivery) time.Time {
	if !r.judgesAge() || p.Item.Version != nil || p.Item.Refused != nil {
		return time.Time{}
	}
	if at, ok := r.IDTime.Of(p.Item.Identity); ok {
		return at
	}
	return sentAt(&p.Message)
}

// sentAt is when a message was sent, as far as its broker or its producer says.
func sentAt(m *semel.Message) time.Time {
	if m.Origin.Written != 0 {
		return m.Origin.Time()
	}
	if at := m.Time(); !at.IsZero() {
		return at
	}
	return noTime
}

// Horizon returns how late a copy can come, and of what that is made.
func (r *Retention) Horizon(ctx context.Context, info source.Info) (source.Horizon, error) {
	var h source.Horizon
	if info.Horizon != nil {
		err := r.Source("Horizon", func() (err error) {
			h, err = info.Horizon(ctx)
			return err
		})
		if err != nil {
			return h, err
		}
	} else {
		h.Why = "how long the source keeps its messages is not known"
	}
	if r.Retries > 0 {
		h.Late += r.Retries
		h.Why += fmt.Sprintf(", retries %v", r.Retries)
	}
	if r.Delay > 0 {
		h.Late += r.Delay
		h.Why += fmt.Sprintf(", delay %v", r.Delay)
	}
	return h, nil
}

// Covers says why a retention is shorter than what it has to cover; nil if it is not.
func (r *Retention) Covers(h source.Horizon) error {
	switch keep := r.Keep; {
	case keep == 0:
		return nil
	case h.Unlimited:
		return fmt.Errorf("semel: consumer %q cannot start: Retention.Keep is %v, and the source's broker can deliver a record again without an end (%s); keep markers for ever, or let the broker drop what is old", r.Consumer, keep, h.Why)
	case h.Late > keep:
		return fmt.Errorf("semel: consumer %q cannot start: Retention.Keep is %v, and a copy can come %v late (%s); keep markers for longer than that", r.Consumer, keep, h.Late, h.Why)
	}
	return nil
}

// Retain finds the horizon and keeps the policy in the store, before a run begins that
// removes anything. That everything is kept for ever, the run says itself.
func (r *Retention) Retain(ctx context.Context, st any, info source.Info) error {
	reaper, able := st.(store.Reaper)
	if !able || r.Keep == 0 {
		return nil
	}
	h, err := r.Horizon(ctx, info)
	if err == nil {
		err = r.Covers(h)
	}
	if err != nil {
		return err
	}
	kept := r.kept()
	kept.Horizon, kept.Why = h.Late, h.Why
	if err := reaper.Retain(ctx, kept); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: its retention is not kept: %w", r.Consumer, err)
	}
	return nil
}

// kept is what the store keeps of the policy, without the horizon.
func (r *Retention) kept() store.Retention {
	return store.Retention{Consumer: r.Consumer, Keep: r.Keep, Bodies: r.Bodies, Off: r.Off}
}

// LookBack finds out whether markers of the consumer were removed once, under another policy
// than this one, which keeps all: copies of those may still come. Where it cannot be known
// each message is asked for its age, which the store judges.
// An error that wraps semel.ErrState: the store looks for the markers where they are not.
func (r *Retention) LookBack(ctx context.Context, st any) error {
	reaper, able := st.(store.Reaper)
	if !able {
		return nil
	}
	removed, err := reaper.Removed(ctx, r.Consumer)
	switch {
	case errors.Is(err, semel.ErrState):
		return fmt.Errorf("semel: consumer %q cannot start: %w", r.Consumer, err)
	case err != nil:
		r.reaped.Store(true)
	case r.Keep == 0:
		r.noteRemoved(removed)
	}
	return nil
}

// noteRemoved has each message asked for its age from now on, if something was removed.
func (r *Retention) noteRemoved(before time.Time) {
	if !before.IsZero() && !r.reaped.Swap(true) {
		r.Logger.Info("markers of this consumer were removed under another policy: what is older is not taken for new", "consumer", r.Consumer, "before", before)
	}
}

// judgesAge reports whether a message that is not known is asked for its age.
func (r *Retention) judgesAge() bool { return r.Keep != 0 || r.reaped.Load() }
