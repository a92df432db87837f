package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// Store is what a rebuild needs of a store.
type Store interface {
	admin.Replays
	admin.Generations
}

// Runner runs one rebuild.
type Runner struct {
	Store Store
	// Replay is the rebuild as the store keeps it; Token is who runs it.
	Replay admin.Replay
	Token  store.Token
	// Who runs it, for the record of its end.
	Who string
	// Counts are those of the consumer that runs, Far says how far its source is read; its
	// errors leave what is known.
	Counts func() semel.Counts
	Far    Far
	// Report is called now and then with the progress.
	Report func(admin.ReplayProgress)
}

// Far says how far a rebuild has come in its source, by lane.
type Far interface {
	// Ends are the offsets behind the last message that is there, Done those behind the last
	// of which everything before is settled.
	Ends(ctx context.Context) (map[string]int64, error)
	Done(ctx context.Context) (map[string]int64, error)
}

// Run runs the rebuild until it is switched to, stopped or dropped, or ctx ends. The replay is
// done when its generation is active, and may be resumed otherwise.
func (r *Runner) Run(ctx context.Context, run func(context.Context, consumer.Generation) error) (store.GenerationState, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeping, done := context.WithCancel(ctx)
	defer done()
	var group worker.Group
	before := r.Replay.Progress.Counts
	group.Go(func() { r.keep(keeping, before, cancel) })
	is, err := consumer.Generation{Number: r.Replay.Generation, Building: true}.Rebuild(ctx, r.Store, r.Replay.Consumer, run)
	done()
	group.Wait()
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrClaimLost) { // it is another's
		return is, errors.Join(err, cause)
	}
	state, act := admin.ReplayStopped, "replay stopped"
	if is == store.GenerationActive {
		state, act, cause = admin.ReplayDone, "replay done", nil
	}
	err = errors.Join(err, cause)
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer end()
	r.progress(ending, before)
	if is == store.GenerationActive { // it had come to the end; what came since is the consumer's
		for i := range r.Replay.Progress.Lanes {
			r.Replay.Progress.Lanes[i].To = r.Replay.Progress.Lanes[i].After
		}
	}
	ended := r.Store.EndReplay(ending, r.Replay.Number, r.Token, state, r.Replay.Progress, store.Act{Verb: act, Who: r.Who, Why: replay.Sum(r.Replay.Progress.Counts)})
	if errors.Is(ended, store.ErrClaimLost) && is == store.GenerationDropped {
		ended = nil
	}
	return is, errors.Join(err, ended)
}

// endWithin is how long the end may take to be written down.
const endWithin = 10 * time.Second

// keep says that the rebuild is run, and hears whether it is to stop, until ctx ends.
func (r *Runner) keep(ctx context.Context, before admin.ReplayCounts, stop context.CancelCauseFunc) {
	alive := time.Now()
	for timing.Wait(ctx, replay.Lease/3) {
		r.progress(ctx, before)
		state, err := r.Store.SaveReplay(ctx, r.Replay.Number, r.Token, replay.Lease, r.Replay.Progress)
		switch {
		case errors.Is(err, store.ErrClaimLost):
			stop(err)
			return
		case err != nil && time.Since(alive) > replay.Lease && ctx.Err() == nil:
			stop(fmt.Errorf("the store has not heard for %v that the rebuild is run, and may give it to another: %w", replay.Lease, err))
			return
		case err == nil && state == admin.ReplayStopping:
			stop(replay.ErrStopped)
			return
		case err == nil:
			alive = time.Now()
			r.Report(r.Replay.Progress)
		}
	}
}

// progress takes down how far it has come; before is what was counted by who ran it before.
func (r *Runner) progress(ctx context.Context, before admin.ReplayCounts) {
	p := &r.Replay.Progress
	p.Counts = counted(before, r.Counts())
	ends, err := r.Far.Ends(ctx)
	if err != nil {
		return
	}
	done, err := r.Far.Done(ctx)
	if err != nil {
		return
	}
	p.Lanes = nil
	for _, name := range sorted(ends) {
		p.Lanes = append(p.Lanes, admin.ReplayLane{Lane: name, To: ends[name], After: done[name]})
	}
}

// counted adds what a consumer did.
func counted(to admin.ReplayCounts, c semel.Counts) admin.ReplayCounts {
	to.Read += c.Deliveries - c.InFlight
	to.Applied += c.Applied + c.Inbox.Applied
	to.Skipped += c.Duplicates
	to.Conflicts += c.Conflicts
	to.Received += c.Received
	to.Waiting += c.Waiting
	to.Parked += c.Parked + c.Inbox.Parked
	to.DeadLettered += c.DeadLettered
	to.Discarded += c.Discarded + c.Inbox.Discarded
	to.Foreign += c.Skipped
	return to
}
