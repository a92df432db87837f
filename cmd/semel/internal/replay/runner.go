package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// Lease is how long a replay is a process's that does not say that it lives; every third of
// it the process says so, and keeps how far it has come.
const Lease = 15 * time.Second

// ErrStopped: somebody has stopped the replay.
var ErrStopped = errors.New("somebody has stopped the replay")

// Runner runs one replay.
type Runner struct {
	Store  admin.Replays
	Number int64
	Token  store.Token
	Source *Source
	// Progress is what is kept beside how far it has come.
	Progress admin.ReplayProgress
	// Who runs it, for the record of its end.
	Who string
	// Told, if not nil, is called whenever its progress was kept.
	Told func()
	// Plan is of tests.
	Plan faults.Plan
}

func (r *Runner) at(p faults.Point) {
	if r.Plan.At != nil {
		r.Plan.At(p, 1)
	}
}

// Run runs the consumer until its source has ended, somebody stops the replay, or ctx ends,
// and says how it ended: as ReplayDone, or as ReplayStopped with the reason.
func (r *Runner) Run(ctx context.Context, name string, c running.Consumer) (running.Summary, admin.ReplayState, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeping, done := context.WithCancel(context.WithoutCancel(ctx)) // it is run until what is in hand has ended
	var group worker.Group
	group.Go(func() { r.keep(keeping, cancel) })
	summary, err := running.All(ctx, map[string]running.Consumer{name: c}, nil, nil)
	done()
	group.Wait()
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrClaimLost) { // it is another's
		return summary, admin.ReplayRunning, errors.Join(err, cause)
	}
	state := admin.ReplayStopped
	if err == nil && r.Source.Done() {
		state, cause = admin.ReplayDone, nil
	}
	err = errors.Join(err, r.Source.Fault(), cause)
	return summary, state, errors.Join(err, r.end(context.WithoutCancel(ctx), state, err))
}

// keep says that the replay is run, and hears whether it is to stop, until ctx ends.
func (r *Runner) keep(ctx context.Context, stop context.CancelCauseFunc) {
	alive := time.Now()
	for timing.Wait(ctx, Lease/3) {
		r.at(faults.BeforeProgress)
		state, err := r.Store.SaveReplay(ctx, r.Number, r.Token, Lease, r.progress())
		r.at(faults.AfterProgress)
		switch {
		case errors.Is(err, store.ErrClaimLost):
			stop(err)
			return
		case err != nil && time.Since(alive) > Lease && ctx.Err() == nil:
			stop(fmt.Errorf("the store has not heard for %v that the replay is run, and may give it to another: %w", Lease, err))
			return
		case err == nil:
			alive = time.Now()
			if state == admin.ReplayStopping {
				stop(ErrStopped) // once; later ones are not heard
			}
			if r.Told != nil {
				r.Told()
			}
		}
	}
}

func (r *Runner) progress() admin.ReplayProgress {
	p := r.Progress
	p.Lanes, p.Counts = r.Source.Progress()
	return p
}

// Abandon ends a replay that was written down, and could not begin.
func (r *Runner) Abandon(ctx context.Context) error {
	return r.end(context.WithoutCancel(ctx), admin.ReplayStopped, errAbandoned)
}

var errAbandoned = errors.New("it could not begin")

// endWithin is how long the end of a replay may take to be written down.
const endWithin = 10 * time.Second

// end writes down how it ended.
func (r *Runner) end(ctx context.Context, state admin.ReplayState, why error) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	p := r.progress()
	act := store.Act{Verb: "replay done", Who: r.Who, Why: Sum(p.Counts)}
	if state != admin.ReplayDone {
		act.Verb = "replay stopped"
		if why != nil && !errors.Is(why, ErrStopped) && !errors.Is(why, context.Canceled) {
			act.Why += "; it could not go on"
		}
	}
	r.at(faults.BeforeReplayEnd)
	err := r.Store.EndReplay(ctx, r.Number, r.Token, state, p, act)
	r.at(faults.AfterReplayEnd)
	if err != nil && !errors.Is(err, semel.ErrState) {
		return fmt.Errorf("how replay %d ended is not written down: %w", r.Number, err)
	}
	return err
}

// Sum says what became of messages.
func Sum(c admin.ReplayCounts) string {
	text := fmt.Sprintf("%d messages read, %d applied, %d skipped", c.Read, c.Applied, c.Skipped)
	for _, one := range []struct {
		n    int64
		what string
	}{{c.Conflicts, "conflicts"}, {c.Received, "received"}, {c.Waiting, "waiting"}, {c.Parked, "parked"}, {c.DeadLettered, "dead-lettered"}, {c.Discarded, "discarded"},
		{c.Foreign, "not the consumer's"}, {c.TooOld, "too old"}, {c.Timeless, "without a time"}, {c.Unknown, "of which it cannot be known"}} {
		if one.n > 0 {
			text += fmt.Sprintf(", %d %s", one.n, one.what)
		}
	}
	return text
}
