package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// The commands for a consumer.
const (
	Pause  admin.Verb = "pause"
	Resume admin.Verb = "resume"
	Limit  admin.Verb = "limit"
)

// Unchanged is the result of a command that changes nothing for a consumer. A command that changes nothing is
// not recorded.
const Unchanged = "unchanged"

// Wish is a command that pauses, resumes or limits a consumer.
type Wish struct {
	Verb admin.Verb
	// PerSecond is the limit for verb Limit, in messages per second; 0 means no limit.
	PerSecond int
	// Who and Why are written to the audit trail.
	Who, Why string
	// DryRun only reports what the command would do.
	DryRun bool
}

// ControlView shows whether a consumer is paused, and the consumer's rate limit.
type ControlView struct {
	Store    string     `json:"store"`
	Consumer string     `json:"consumer"`
	Paused   bool       `json:"paused"`
	Pause    *OrderView `json:"pause,omitempty"`
	// PerSecond is the maximum rate of each process, in messages per second; 0 means no limit.
	PerSecond int        `json:"per_second"`
	Limit     *OrderView `json:"limit,omitempty"`
}

// OrderView shows who gave a command, the reason and the time.
type OrderView struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// Controlled is the result of a Wish, with the controls of the consumer after the command.
type Controlled struct {
	ControlView
	// Result is Done, Would, Unchanged or Failed.
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// OK reports whether the command succeeded.
func (c Controlled) OK() bool { return c.Result != Failed }

// ControlOf reads the controls of a consumer from a store.
func ControlOf(ctx context.Context, store string, s admin.Controls, consumer string) (ControlView, error) {
	c, err := s.Control(ctx, consumer)
	if err != nil {
		return ControlView{}, fmt.Errorf("store %s: %w", store, err)
	}
	return ControlView{
		Store: store, Consumer: consumer, Paused: c.Paused, Pause: orderOf(c.Pause), PerSecond: c.PerSecond, Limit: orderOf(c.Limit),
	}, nil
}

// orderOf returns the view of a command, or nil if no command was given.
func orderOf(o admin.Order) *OrderView {
	if o == (admin.Order{}) {
		return nil
	}
	return &OrderView{By: o.By, Why: o.Why, At: o.At.UTC()}
}

// Carry executes an operator's command (a Wish) for a consumer. Pausing a paused consumer records the command
// again, so that the newest reason is shown. Resuming a running consumer changes nothing. Removing a limit
// that does not exist changes nothing.
func (w Wish) Carry(ctx context.Context, s admin.Controls, v ControlView) Controlled {
	done := Controlled{ControlView: v, Result: Done}
	act := store.Act{Verb: string(w.Verb), Who: w.Who, Why: w.Why}
	var err error
	switch {
	case w.Verb == Resume && !v.Paused, w.Verb == Limit && w.PerSecond == 0 && v.PerSecond == 0:
		done.Result = Unchanged
	case w.DryRun:
		done.Result = Would
	case w.Verb == Limit:
		err = s.Limit(ctx, v.Consumer, w.PerSecond, act)
	default:
		err = s.Pause(ctx, v.Consumer, w.Verb == Pause, act)
	}
	if err == nil && done.Result == Done {
		done.ControlView, err = ControlOf(ctx, v.Store, s, v.Consumer)
	}
	if err != nil {
		done.Result, done.Error = Failed, errorText(err)
	}
	return done
}
