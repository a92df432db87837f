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
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// Store has the methods of a store that a rebuild needs.
type Store interface {
	admin.Replays
	admin.Generations
}

// Runner runs one rebuild.
type Runner struct {
	Store Store
	// Replay is the recorded rebuild. Token identifies the process that runs the rebuild.
	Replay admin.Replay
	Token  store.Token
	// Who is the name of the person that runs the rebuild, with which the end of the rebuild is recorded.
	Who string
	// Counts returns the counts of the running consumer. Far returns how much of the source is read. If Far
	// fails, the progress keeps the last known values.
	Counts func() semel.Counts
	Far    Far
	// Report is called with the progress at intervals.
	Report func(admin.ReplayProgress)
}

// Far reports how much of its source a rebuild has read, by lane.
type Far interface {
	// Ends returns the offset after the last existing message of each lane. Done returns, for each lane, the
	// offset up to which all messages have ended.
	Ends(ctx context.Context) (map[string]int64, error)
	Done(ctx context.Context) (map[string]int64, error)
}

// Run runs the rebuild until a switch activates the generation, an operator stops or drops the rebuild, or
// ctx ends. Run records the replay as done when the new generation is active. If the generation is not active
// at the end of the run, the rebuild can be resumed.
func (r *Runner) Run(ctx context.Context, run func(context.Context, consumer.Generation) error) (generations.State, error) {
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
	if errors.Is(cause, store.ErrClaimLost) { // another process runs the rebuild
		return is, errors.Join(err, cause)
	}
	state, act := admin.ReplayStopped, "replay stopped"
	if is == generations.Active {
		state, act, cause = admin.ReplayDone, "replay done", nil
	}
	err = errors.Join(err, cause)
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer end()
	r.recordProgress(ending, before)
	if is == generations.Active { // the rebuild had reached the end; the consumer processes newer messages
		for i := range r.Replay.Progress.Lanes {
			r.Replay.Progress.Lanes[i].To = r.Replay.Progress.Lanes[i].After
		}
	}
	ended := r.Store.EndReplay(ending, r.Replay.Number, r.Token, state, r.Replay.Progress, store.Act{Verb: act, Who: r.Who, Why: replay.Sum(r.Replay.Progress.Counts)})
	if errors.Is(ended, store.ErrClaimLost) && is == generations.Dropped {
		ended = nil
	}
	return is, errors.Join(err, ended)
}

// outcomeTimeout is the timeout for recording the end of a rebuild.
const outcomeTimeout = 10 * time.Second

// keep renews the lease until ctx ends. keep stops the run if an operator has stopped the rebuild.
func (r *Runner) keep(ctx context.Context, before admin.ReplayCounts, stop context.CancelCauseFunc) {
	alive := time.Now()
	for timing.Wait(ctx, replay.Lease/3) {
		r.recordProgress(ctx, before)
		state, err := r.Store.SaveReplay(ctx, r.Replay.Number, r.Token, replay.Lease, r.Replay.Progress)
		switch {
		case errors.Is(err, store.ErrClaimLost):
			stop(err)
			return
		case err != nil && time.Since(alive) > replay.Lease && ctx.Err() == nil:
			stop(fmt.Errorf("the lease was not renewed for %v, so another process may take the rebuild: %w", replay.Lease, err))
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

// recordProgress records the progress of the rebuild. The parameter before has the counts of earlier
// processes of the rebuild.
func (r *Runner) recordProgress(ctx context.Context, before admin.ReplayCounts) {
	p := &r.Replay.Progress
	p.Counts = addCounts(before, r.Counts())
	ends, err := r.Far.Ends(ctx)
	if err != nil {
		return
	}
	done, err := r.Far.Done(ctx)
	if err != nil {
		return
	}
	p.Lanes = nil
	for _, name := range sortedLanes(ends) {
		p.Lanes = append(p.Lanes, admin.ReplayLane{Lane: name, To: ends[name], After: done[name]})
	}
}

func addCounts(to admin.ReplayCounts, c semel.Counts) admin.ReplayCounts {
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
