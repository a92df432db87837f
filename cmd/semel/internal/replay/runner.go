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

// Lease is how long a replay belongs to a process that sends no sign of life. Every third of it, the
// process renews the lease and records the progress.
const Lease = 15 * time.Second

// ErrStopped: an operator has stopped the replay.
var ErrStopped = errors.New("an operator has stopped the replay")

// Runner runs one replay.
type Runner struct {
	Store  admin.Replays
	Number int64
	Token  store.Token
	Source *Source
	// Progress is the recorded progress.
	Progress admin.ReplayProgress
	// Who runs the replay, for the record of its end.
	Who string
	// Told, if not nil, is called whenever the progress was recorded.
	Told func()
	// Plan is for tests.
	Plan faults.Plan
}

func (r *Runner) at(p faults.Point) {
	if r.Plan.At != nil {
		r.Plan.At(p, 1)
	}
}

// Run runs the consumer until its source has ended, an operator stops the replay, or ctx ends.
// Run records the end: ReplayDone, or ReplayStopped with the reason.
func (r *Runner) Run(ctx context.Context, name string, c running.Consumer) (running.Summary, admin.ReplayState, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeping, done := context.WithCancel(context.WithoutCancel(ctx)) // renews the lease until messages in flight have ended
	var group worker.Group
	group.Go(func() { r.keep(keeping, cancel) })
	summary, err := running.All(ctx, map[string]running.Consumer{name: c}, nil, nil)
	done()
	group.Wait()
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrClaimLost) { // another process runs it
		return summary, admin.ReplayRunning, errors.Join(err, cause)
	}
	state := admin.ReplayStopped
	if err == nil && r.Source.Done() {
		state, cause = admin.ReplayDone, nil
	}
	err = errors.Join(err, r.Source.Fault(), cause)
	return summary, state, errors.Join(err, r.end(context.WithoutCancel(ctx), state, err))
}

// keep renews the lease and checks whether the replay was stopped, until ctx ends.
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
			stop(fmt.Errorf("the lease was not renewed for %v, so another process may take the replay: %w", Lease, err))
			return
		case err == nil:
			alive = time.Now()
			if state == admin.ReplayStopping {
				stop(ErrStopped) // the first cause counts
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

// Abandon ends a recorded replay that could not begin.
func (r *Runner) Abandon(ctx context.Context) error {
	return r.end(context.WithoutCancel(ctx), admin.ReplayStopped, errAbandoned)
}

var errAbandoned = errors.New("it could not begin")

// outcomeTimeout is the timeout for writing to the store how the replay ended.
const outcomeTimeout = 10 * time.Second

// end records how the replay ended.
func (r *Runner) end(ctx context.Context, state admin.ReplayState, why error) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	p := r.progress()
	act := store.Act{Verb: "replay done", Who: r.Who, Why: Sum(p.Counts)}
	if state != admin.ReplayDone {
		act.Verb = "replay stopped"
		if why != nil && !errors.Is(why, ErrStopped) && !errors.Is(why, context.Canceled) {
			act.Why += "; it could not continue"
		}
	}
	r.at(faults.BeforeReplayEnd)
	err := r.Store.EndReplay(ctx, r.Number, r.Token, state, p, act)
	r.at(faults.AfterReplayEnd)
	if err != nil && !errors.Is(err, semel.ErrState) {
		return fmt.Errorf("replay %d: record its end: %w", r.Number, err)
	}
	return err
}

// Sum describes the counts of messages.
func Sum(c admin.ReplayCounts) string {
	text := fmt.Sprintf("%d messages read, %d applied, %d skipped", c.Read, c.Applied, c.Skipped)
	for _, one := range []struct {
		n    int64
		what string
	}{{c.Conflicts, "conflicts"}, {c.Received, "received"}, {c.Waiting, "waiting"}, {c.Parked, "parked"}, {c.DeadLettered, "dead-lettered"}, {c.Discarded, "discarded"},
		{c.Foreign, "for other consumers"}, {c.TooOld, "too old"}, {c.Timeless, "without a time"}, {c.Unknown, "with unknown outcome"}} {
		if one.n > 0 {
			text += fmt.Sprintf(", %d %s", one.n, one.what)
		}
	}
	return text
}
