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

// Retention is the policy how long a consumer's markers and rows are kept. With the zero value, markers and rows are
// kept forever.
type Retention struct {
	guard.Guard
	// Keep is how long markers are kept; 0 means forever. Bodies is how long bodies are kept; 0 means as long as their
	// rows. Delay is how late a producer may send a duplicate. Retries is the maximum time that all retries of a
	// message together take.
	Keep, Bodies, Delay, Retries time.Duration
	// IDTime is the kind of time that ids contain.
	IDTime identity.IDTime
	// DailyPartitions means that the store checks the age of ids.
	DailyPartitions bool
	// Off means that no process removes markers of this consumer.
	Off bool

	// If reaped is true, markers were removed, or may have been removed, under another policy. LookBack and the Reaper
	// set reaped.
	reaped atomic.Bool
}

// noTime is the age of a message without a time. noTime is older than every retention.
var noTime = time.Unix(0, 0)

// JudgeTimes changes the store's answer for a new message from Fresh to Old if the message has no time. So with a
// retention, messages without a time are rejected from the beginning, and not only after the first removal of markers.
func (r *Retention) JudgeTimes(marks []store.Mark, verdicts []store.Verdict) {
	if r.Keep == 0 || r.DailyPartitions { // with DailyPartitions the store checks the age of ids
		return
	}
	for i := range verdicts {
		if verdicts[i].Kind == store.Fresh && marks[i].Age.Equal(noTime) {
			verdicts[i].Kind = store.Old
		}
	}
}

// AgeOf returns the time from which a message's age is computed, or zero if its age is not checked.
func (r *Retention) AgeOf(p *delivery.Delivery) time.Time {
	if !r.judgesAge() || p.Item.Version != nil || p.Item.Refused != nil {
		return time.Time{}
	}
	if at, ok := r.IDTime.Of(p.Item.Identity); ok {
		return at
	}
	return sentAt(&p.Message)
}

// sentAt returns when a message was sent: the broker's timestamp or, if there is none, the producer's. If neither time
// is known, sentAt returns noTime.
func sentAt(m *semel.Message) time.Time {
	if m.Origin.Written != 0 {
		return m.Origin.Time()
	}
	if at := m.Time(); !at.IsZero() {
		return at
	}
	return noTime
}

// Horizon returns how late a duplicate can arrive: the time for which the source can repeat messages, plus the retries,
// plus Delay.
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
		h.Why = "the retention of the source is unknown"
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

// Covers returns an error if Keep is shorter than h, the time after which a duplicate can still arrive.
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

// Retain stores the policy, together with the source's horizon (how long the source can repeat messages), before the
// run begins. If all markers are kept forever, Retain does nothing, and the reaper stores the policy later (keepAll).
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
	kept := r.toStored()
	kept.Horizon, kept.Why = h.Late, h.Why
	if err := reaper.Retain(ctx, kept); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: its retention is not kept: %w", r.Consumer, err)
	}
	return nil
}

// toStored converts the policy to a store.Retention and leaves the field Horizon empty.
func (r *Retention) toStored() store.Retention {
	return store.Retention{Consumer: r.Consumer, Keep: r.Keep, Bodies: r.Bodies, Off: r.Off}
}

// LookBack finds out whether markers of the consumer were removed under another policy, although the current policy
// keeps all markers. Duplicates of messages whose markers were removed may still arrive. If the store cannot say, the
// consumer checks the age of each message. An error that wraps semel.ErrState means that the markers are in another
// table than the store expects.
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

// noteRemoved makes the consumer check the age of each later message, if markers were removed.
func (r *Retention) noteRemoved(before time.Time) {
	if !before.IsZero() && !r.reaped.Swap(true) {
		r.Logger.Info("markers of this consumer were removed under another policy: what is older is not taken for new", "consumer", r.Consumer, "before", before)
	}
}

// judgesAge reports whether the age of a message without a marker is checked.
func (r *Retention) judgesAge() bool { return r.Keep != 0 || r.reaped.Load() }
