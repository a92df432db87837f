// Package replays has the commands that process a source again, that rebuild a consumer's results from the
// source, and that compare the source with the applied messages.
package replays

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{replayCommand(c), rebuildCommand(c), reconcileCommand(c)}
}

func replayCommand(c *command.CLI) *cobra.Command {
	return command.Group("replay", "Process messages of a source again",
		replayPlan(c), replayStart(c), replayStatus(c, admin.ReplayAgain), replayStop(c, admin.ReplayAgain))
}

// replayOptions has the flags of the commands about replays and rebuilds.
type replayOptions struct {
	who, why string
	// The fields from and to are the bounds as the user typed the bounds.
	from, to  string
	bounds    [2]replay.Bound
	perSecond int
	resume    int64
	dryRun    bool
	// pauseLive pauses the running consumer during a rebuild.
	pauseLive bool
}

func replayPlan(c *command.CLI) *cobra.Command {
	r := &replayOptions{dryRun: true}
	cmd := &cobra.Command{
		Use:   "plan NAME",
		Short: "Predict the result of a replay",
		Long: `Count how many messages of the consumer's source a replay would apply, skip or
refuse. The command changes nothing, and the consumer may run meanwhile.

The command reads the messages and looks up each in the consumer's store. The
prediction assumes that handlers succeed and nothing else happens.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runReplay(cmd.Context(), c, r) },
	}
	return replayFlags(c, cmd, r)
}

func replayStart(c *command.CLI) *cobra.Command {
	r := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "start NAME --because TEXT",
		Short: "Process missing messages of a source again",
		Long: `Read the source of a consumer again and apply the messages that are missing.
The consumer may run meanwhile.

The handler runs in this process, independently of the position of the
consumer; messages that were processed are skipped. The command first predicts
the results, as semel replay plan does, and prints the actual results at the
end.

The policy must allow replays, and effects in other systems if wanted (replay:
{allowed, effects, max_age}). The store records who started the replay, why,
and its progress: continue with --resume after a kill.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.checkStart(cmd, "semel replay status"); err != nil {
				return err
			}
			if r.resume != 0 && (r.from != "" || r.to != "") {
				return command.UsageError("give --resume or bounds, not both: a resumed replay keeps its bounds")
			}
			return runReplay(cmd.Context(), c, r)
		},
	}
	startFlags(cmd, r)
	return replayFlags(c, cmd, r)
}

// checkStart checks the flags that startFlags adds. The parameter list is the command that lists replays;
// errors mention this command.
func (r *replayOptions) checkStart(cmd *cobra.Command, list string) error {
	if cmd.Flags().Changed("resume") && r.resume < 1 {
		return command.UsageError("--resume %d is no number of a replay; %s shows them", r.resume, list)
	}
	return command.CheckRecord(&r.who, r.why, r.dryRun)
}

// startFlags adds the flags that `replay start` and `rebuild start` share.
func startFlags(cmd *cobra.Command, r *replayOptions) {
	cmd.Flags().IntVar(&r.perSecond, "rate", 0, "messages a second; 0: unlimited")
	cmd.Flags().Int64Var(&r.resume, "resume", 0, "continue the stopped one of this number")
	command.DryRunFlag(cmd, &r.dryRun)
	command.RecordFlags(cmd, &r.who, &r.why)
}

// replayFlags adds the argument and the flags that choose the messages to replay.
func replayFlags(c *command.CLI, cmd *cobra.Command, r *replayOptions) *cobra.Command {
	cmd.Flags().StringVar(&r.from, "from", "", "start: a time, 24h (ago), a byte, orders/0=12")
	cmd.Flags().StringVar(&r.to, "to", "", "end, in the same form (default: the end)")
	command.RefuseEmpty(cmd, "from", "to")
	return c.WithConfig(c.ForConsumer(cmd))
}

// check parses the flags and returns a usage error for invalid values.
func (r *replayOptions) check(c *command.CLI, now func() time.Time) error {
	if r.perSecond < 0 {
		return command.UsageError("--rate %d is no rate; give how many messages a second, or 0", r.perSecond)
	}
	for i, flag := range []struct{ name, text string }{{"from", r.from}, {"to", r.to}} {
		var err error
		if r.bounds[i], err = boundOf(flag.name, flag.text, now); err != nil {
			return err
		}
	}
	return nil
}

// boundOf parses a bound. A bound is a list of offsets by lane, a single byte offset, or a time.
func boundOf(flag, text string, now func() time.Time) (b replay.Bound, err error) {
	if text == "" {
		return b, nil
	}
	if at, err := strconv.ParseInt(text, 10, 64); err == nil {
		if at < 0 {
			return b, command.UsageError("--%s %q is no offset; give 0 or more", flag, text)
		}
		return replay.Bound{Offsets: map[string]int64{"": at}}, nil
	}
	if !strings.Contains(text, "=") {
		b.Time, err = command.ParseTime(flag, text, now)
		return b, err
	}
	b.Offsets = map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		i := strings.LastIndexByte(part, '=')
		at, err := strconv.ParseInt(part[i+1:], 10, 64)
		if i < 1 || err != nil || at < 0 {
			return b, command.UsageError("--%s: %q is no offset of a partition; write it as orders/0=12", flag, part)
		}
		b.Offsets[part[:i]] = at
	}
	return b, nil
}

// permittedConsumer returns the policy and the consumer in --consumer. If the function in the parameter refuses returns
// a fault, permittedConsumer returns this fault as an error.
func permittedConsumer(c *command.CLI, refuses func(*policy.Policy, *policy.Consumer) *shape.Fault) (*policy.Policy, *policy.Consumer, error) {
	p, err := c.Load()
	if err != nil {
		return nil, nil, err
	}
	of := p.Consumer(c.Consumer)
	if of == nil {
		return nil, nil, c.NoConsumer(p, c.Consumer)
	}
	if f := refuses(p, of); f != nil {
		return nil, nil, command.Faults{*f}
	}
	return p, of, nil
}

// replayable returns the policy and the consumer in --consumer. If the policy does not allow replays of the
// consumer, replayable returns an error.
func replayable(c *command.CLI) (*policy.Policy, *policy.Consumer, error) {
	p, of, err := permittedConsumer(c, (*policy.Policy).MayReplay)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(p.Databases(), p.Store(of.Store)) {
		return nil, nil, command.UsageError("consumer %s keeps keys in store %s, which keeps no replays", of.Name, of.Store)
	}
	return p, of, nil
}

// runReplay prints the plan of a replay. Without --dry-run, runReplay also runs the replay.
func runReplay(ctx context.Context, c *command.CLI, r *replayOptions) error {
	if err := r.check(c, time.Now); err != nil {
		return err
	}
	p, of, err := replayable(c)
	if err != nil {
		return err
	}
	a, err := c.OpenChecked(ctx, p, of.Store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	origin, err := a.Origin(of)
	if err != nil {
		return replayFailed(err)
	}
	defer origin.Close()
	run := &replayRun{CLI: c, requested: r, consumer: of, assembly: a, origin: origin, now: time.Now()}
	if r.resume > 0 {
		err = run.resume(ctx)
	} else {
		err = run.plan(ctx)
	}
	if err != nil || r.dryRun {
		return replayFailed(err)
	}
	return replayFailed(run.carryOut(ctx))
}

// replayRun is a planned or running replay.
type replayRun struct {
	*command.CLI
	requested *replayOptions
	consumer  *policy.Consumer
	assembly  *assembly.Assembly
	origin    replay.Origin
	now       time.Time // the time for which ages of messages are computed
	progress  admin.ReplayProgress
	runner    replay.Runner
	live      *running.Live // nil if standard error is not a terminal
}

// replayFailed returns the error of a replay with an exit code. A fault of the policy gives another exit code
// than other errors.
func replayFailed(err error) error {
	var f shape.Fault
	var known *command.Failure
	switch {
	case errors.As(err, &f):
		return command.Faults{f}
	case errors.As(err, &known):
		return err
	}
	return command.Failed(err)
}

// plan determines the range of the replay and predicts the outcomes.
func (r *replayRun) plan(ctx context.Context) (err error) {
	if r.progress, err = r.origin.Plan(ctx, r.requested.bounds[0], r.requested.bounds[1]); err != nil {
		return err
	}
	predicted, err := r.predict(ctx)
	if err != nil {
		return err
	}
	r.progress.Prediction = &predicted
	if r.requested.dryRun {
		return r.printPlan()
	}
	r.Remark("predicted: %s", replay.Sum(predicted))
	return nil
}

func (r *replayRun) predict(ctx context.Context) (counts admin.ReplayCounts, err error) {
	inner, err := r.origin.Source(ctx, r.progress)
	if err != nil {
		return counts, err
	}
	source := replay.NewSource(inner, r.options(r.progress, 0))
	defer func() { err = errors.Join(err, source.Close(context.WithoutCancel(ctx))) }()
	teller, err := r.assembly.Replayer(ctx, r.consumer.Name, nil, semel.Replay{ID: 1, Effects: r.consumer.Replay.Effects})
	if err != nil {
		return counts, err
	}
	return replay.Preview(ctx, source, teller, r.consumer.Config(), r.printReading(source))
}

// options returns the options of a replay source for the given progress.
func (r *replayRun) options(p admin.ReplayProgress, perSecond int) replay.Options {
	return replay.Options{Progress: p, Oldest: r.consumer.Replay.Oldest(r.now), SentAt: replay.SentAt(r.consumer.Config()), PerSecond: perSecond}
}

// resume continues a replay that was stopped or whose process was killed.
func (r *replayRun) resume(ctx context.Context) error {
	kept, err := r.assembly.Stores[0].Replay(ctx, r.requested.resume)
	switch {
	case err != nil:
		return err
	case kept.Consumer != r.consumer.Name:
		return command.UsageError("replay %d is of consumer %s, not of %s", kept.Number, kept.Consumer, r.consumer.Name)
	case kept.Kind != admin.ReplayAgain:
		return command.UsageError("replay %d is of the kind %s, which is not resumed so", kept.Number, kept.Kind)
	case kept.Effects != r.consumer.Replay.Effects:
		return r.assembly.Policy().Fault("consumers."+r.consumer.Name+".replay.effects", fmt.Sprintf("replay %d was begun with another value", kept.Number), "write what it was, or start another replay")
	case kept.State == admin.ReplayDone:
		return fmt.Errorf("replay %d: %w", kept.Number, admin.ErrReplayEnded)
	}
	r.progress = kept.Progress
	if r.requested.dryRun {
		return r.printPlan()
	}
	return nil
}

// carryOut records the replay in the store and runs the replay.
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
	r.runner.Source = replay.NewSource(inner, r.options(r.progress, r.requested.perSecond))
	made, err := r.assembly.Replayer(ctx, r.consumer.Name, r.runner.Source, semel.Replay{ID: r.runner.Number, Effects: r.consumer.Replay.Effects})
	if err != nil {
		return errors.Join(err, r.runner.Abandon(ctx))
	}
	closeIt = false // because the consumer closes the source
	r.watch(made)
	summary, state, err := r.runner.Run(ctx, r.consumer.Name, made)
	if r.live != nil {
		r.live.Close()
	}
	return r.end(summary.Consumers[r.consumer.Name].Inbox, state, err)
}

// begin records a new replay in the store, or takes over a recorded replay.
func (r *replayRun) begin(ctx context.Context) (err error) {
	st := r.assembly.Stores[0]
	r.runner = replay.Runner{Store: st, Token: store.NewToken(), Number: r.requested.resume, Who: r.requested.who, Progress: r.progress}
	act := store.Act{Verb: "replay start", Who: r.requested.who, Why: r.requested.why}
	if r.requested.resume == 0 {
		r.runner.Number, err = st.NewReplay(ctx, admin.Replay{Consumer: r.consumer.Name, Kind: admin.ReplayAgain, Effects: r.consumer.Replay.Effects, Progress: r.progress}, r.runner.Token, replay.Lease, act)
		return err
	}
	act.Verb = "replay resume"
	taken, err := st.TakeReplay(ctx, r.runner.Number, r.runner.Token, replay.Lease, act)
	r.progress, r.runner.Progress = taken.Progress, taken.Progress
	return err
}
