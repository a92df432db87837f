package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// replayRun is a replay on its way.
type replayRun struct {
	*common
	wanted   *replaying
	of       *policy.Consumer
	assembly *assembly.Assembly
	origin   replay.Origin
	at       time.Time // by which ages are judged
	progress admin.ReplayProgress
	runner   replay.Runner
	live     *running.Live // nil where nobody watches
}

// replayFailed is the error of a replay: one of the policy, or of its work.
func replayFailed(err error) error {
	var f policy.Fault
	var known *failure
	switch {
	case errors.As(err, &f):
		return faults{f}
	case errors.As(err, &known):
		return err
	}
	return failed(err)
}

// plan finds what is to be replayed, and foretells what would become of it.
func (r *replayRun) plan(ctx context.Context) (err error) {
	if r.progress, err = r.origin.Plan(ctx, r.wanted.bounds[0], r.wanted.bounds[1]); err != nil {
		return err
	}
	foretold, err := r.foretell(ctx)
	if err != nil {
		return err
	}
	r.progress.Prediction = &foretold
	if r.wanted.dryRun {
		return r.printPlan()
	}
	r.remark("it would be: %s", replay.Sum(foretold))
	return nil
}

func (r *replayRun) foretell(ctx context.Context) (counts admin.ReplayCounts, err error) {
	inner, err := r.origin.Source(ctx, r.progress)
	if err != nil {
		return counts, err
	}
	source := replay.NewSource(inner, r.options(r.progress, 0))
	defer func() { err = errors.Join(err, source.Close(context.WithoutCancel(ctx))) }()
	teller, err := r.assembly.Replayer(ctx, r.of.Name, nil, semel.Replay{ID: 1, Effects: r.of.Replay.Effects})
	if err != nil {
		return counts, err
	}
	return replay.Preview(ctx, source, teller, r.of.Config(), r.tellReading(source))
}

// options are those of what reads a part of the source.
func (r *replayRun) options(p admin.ReplayProgress, perSecond int) replay.Options {
	return replay.Options{Progress: p, Oldest: r.of.Replay.Oldest(r.at), SentAt: replay.SentAt(r.of.Config()), PerSecond: perSecond}
}

// resume takes up a replay that was stopped or killed.
func (r *replayRun) resume(ctx context.Context) error {
	kept, err := r.assembly.Stores[0].Replay(ctx, r.wanted.resume)
	switch {
	case err != nil:
		return err
	case kept.Consumer != r.of.Name:
		return usage("replay %d is of consumer %s, not of %s", kept.Number, kept.Consumer, r.of.Name)
	case kept.Kind != admin.ReplayAgain:
		return usage("replay %d is of the kind %s, which is not resumed so", kept.Number, kept.Kind)
	case kept.Effects != r.of.Replay.Effects:
		return r.assembly.Policy().Fault("consumers."+r.of.Name+".replay.effects", fmt.Sprintf("replay %d was begun with another value", kept.Number), "write what it was, or start another replay")
	case kept.State == admin.ReplayDone:
		return fmt.Errorf("replay %d: %w", kept.Number, admin.ErrReplayEnded)
	}
	r.progress = kept.Progress
	if r.wanted.dryRun {
		return r.printPlan()
	}
	return nil
}

// carryOut writes the replay down and runs it.
func (r *replayRun) carryOut(ctx context.Context) (err error) {
	inner, err := r.origin.Source(ctx, r.progress)
	if err != nil {
		return err
	}
	closeIt := true
	defer func() {
		if closeIt {
			err = errors.Join(err, inner.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.runner.Source = replay.NewSource(inner, r.options(r.progress, r.wanted.perSecond))
	made, err := r.assembly.Replayer(ctx, r.of.Name, r.runner.Source, semel.Replay{ID: r.runner.Number, Effects: r.of.Replay.Effects})
	if err != nil {
		return errors.Join(err, r.runner.Abandon(ctx))
	}
	closeIt = false // the consumer does
	r.watch(made)
	summary, state, err := r.runner.Run(ctx, r.of.Name, made)
	if r.live != nil {
		r.live.Close()
	}
	return r.end(summary.Consumers[r.of.Name].Inbox, state, err)
}

// begin writes the replay down, or takes it up.
func (r *replayRun) begin(ctx context.Context) (err error) {
	st := r.assembly.Stores[0]
	r.runner = replay.Runner{Store: st, Token: store.NewToken(), Number: r.wanted.resume, Who: r.wanted.who, Progress: r.progress}
	act := store.Act{Verb: "replay start", Who: r.wanted.who, Why: r.wanted.why}
	if r.wanted.resume == 0 {
		r.runner.Number, err = st.NewReplay(ctx, admin.Replay{Consumer: r.of.Name, Kind: admin.ReplayAgain, Effects: r.of.Replay.Effects, Progress: r.progress}, r.runner.Token, replay.Lease, act)
		return err
	}
	act.Verb = "replay resume"
	taken, err := st.TakeReplay(ctx, r.runner.Number, r.runner.Token, replay.Lease, act)
	r.progress, r.runner.Progress = taken.Progress, taken.Progress
	return err
}
