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

// Lease is how long a replay belongs to a process that does not renew the lease. A process renews the lease
// and records the progress three times per Lease.
const Lease = 15 * time.Second

// ErrStopped means that an operator has stopped the replay.
var ErrStopped = errors.New("an operator has stopped the replay")

// Runner runs one replay.
type Runner struct {
	Store  admin.Replays
	Number int64
	Token  store.Token
	Source *Source
	// Progress is the progress that the store has recorded.
	Progress admin.ReplayProgress
	// Who is the name of the person that runs the replay, with which the end of the replay is recorded.
	Who string
	// Told is called after each recording of the progress; may be nil.
	Told func()
	// Plan has crash points for tests.
	Plan faults.Plan
}

func (r *Runner) reachPoint(p faults.Point) {
	if r.Plan.At != nil {
		r.Plan.At(p, 1)
	}
}

// Run runs the consumer until its source has ended, an operator stops the replay, or ctx ends. At the end,
// Run records the state ReplayDone, or the state ReplayStopped with the reason.
func (r *Runner) Run(ctx context.Context, name string, c running.Consumer) (running.Summary, admin.ReplayState, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeping, done := context.WithCancel(context.WithoutCancel(ctx)) // renew the lease until the messages in progress have ended
	var group worker.Group
	group.Go(func() { r.keep(keeping, cancel) })
	summary, err := running.All(ctx, map[string]running.Consumer{name: c}, nil, nil)
	done()
	group.Wait()
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrClaimLost) { // another process runs the replay
		return summary, admin.ReplayRunning, errors.Join(err, cause)
	}
	state := admin.ReplayStopped
	if err == nil && r.Source.Done() {
		state, cause = admin.ReplayDone, nil
	}
	err = errors.Join(err, r.Source.Fault(), cause)
	return summary, state, errors.Join(err, r.end(context.WithoutCancel(ctx), state, err))
}

// keep renews the lease until ctx ends. keep stops the run if an operator has stopped the replay.
func (r *Runner) keep(ctx context.Context, stop context.CancelCauseFunc) {
	alive := time.Now()
	for timing.Wait(ctx, Lease/3) {
		r.reachPoint(faults.BeforeProgress)
		state, err := r.Store.SaveReplay(ctx, r.Number, r.Token, Lease, r.progress())
		r.reachPoint(faults.AfterProgress)
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
				stop(ErrStopped) // only the first cause counts
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

// Abandon records the end of a replay that could not start.
func (r *Runner) Abandon(ctx context.Context) error {
	return r.end(context.WithoutCancel(ctx), admin.ReplayStopped, errAbandoned)
}

var errAbandoned = errors.New("it could not begin")

// outcomeTimeout is the timeout for recording the end of a replay.
const outcomeTimeout = 10 * time.Second

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
	r.reachPoint(faults.BeforeReplayEnd)
	err := r.Store.EndReplay(ctx, r.Number, r.Token, state, p, act)
	r.reachPoint(faults.AfterReplayEnd)
	if err != nil && !errors.Is(err, semel.ErrState) {
		return fmt.Errorf("replay %d: record its end: %w", r.Number, err)
	}
	return err
}

// Sum returns the counts as a text.
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
