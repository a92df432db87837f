package replays

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

func rebuildCommand(c *command.CLI) *cobra.Command {
	return command.Group("rebuild", "Rebuild results in a new generation",
		rebuildStart(c), replayStatus(c, admin.ReplayRebuild), replayStop(c, admin.ReplayRebuild), rebuildSwitch(c), rebuildDrop(c))
}

func rebuildStart(c *command.CLI) *cobra.Command {
	r := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "start NAME --because TEXT",
		Short: "Fill a new generation from the whole source",
		Long: `Process the whole source of a consumer into a new generation, until semel
rebuild switch makes it the active one. The consumer runs meanwhile.

The handler runs in this process. The policy must allow replays, and every
statement that changes the consumer's tables must use :generation. After a kill,
continue with --resume.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.checkStart(cmd, "semel rebuild status"); err != nil {
				return err
			}
			switch flags := cmd.Flags(); {
			case flags.Changed("from") || flags.Changed("to"):
				return command.UsageError("a rebuild reads the whole of its source: leave --from and --to out")
			case flags.Changed("into"):
				return command.UsageError("--into is not there: a rebuild fills a generation of the consumer's own store, in tables with a column for it and with :generation in every statement that changes them (see docs/operate/rebuild.md). For another store, give it to a consumer of another name")
			}
			return runRebuild(cmd.Context(), c, r)
		},
	}
	startFlags(cmd, r)
	for _, absent := range []string{"from", "to", "into"} {
		cmd.Flags().String(absent, "", "not supported")
		_ = cmd.Flags().MarkHidden(absent) // ignore the error for a flag that does not exist
	}
	cmd.Flags().BoolVar(&r.pauseLive, "pause-live", false, "pause the consumer until semel consumers resume")
	return c.WithConfig(c.ForConsumer(cmd))
}

// runRebuild starts or resumes a rebuild. The rebuild runs until a switch activates its generation, or until
// an operator stops or drops the rebuild. At the end of the rebuild, runRebuild prints the result.
func runRebuild(ctx context.Context, c *command.CLI, r *replayOptions) error {
	if err := r.check(c, time.Now); err != nil {
		return err
	}
	p, of, err := permittedConsumer(c, (*policy.Policy).MayRebuild)
	if err != nil {
		return err
	}
	live, log, closeLive, err := openRebuildLog(c)
	if err != nil {
		return err
	}
	defer closeLive()
	o := assembly.Options{Consumer: of.Name, Stdin: c.In, Logger: log}
	a, err := assembly.Open(p, o, assembly.Used(p, of.Name), func(*policy.Store) bool { return false })
	if err != nil {
		return command.Failed(err)
	}
	defer c.Close(a)
	if err := a.Check(ctx); err != nil {
		return command.Failed(err)
	}
	if r.dryRun {
		_, err := fmt.Fprintf(c.Out, "would fill a new generation of %s from the whole of source %s\n", of.Name, of.From)
		return command.Failed(err)
	}
	run, end, err := beginRebuild(ctx, c, a, of, r)
	if err != nil {
		return command.Failed(err)
	}
	defer end()
	one, err := a.Rebuilder(ctx, of, semel.Replay{ID: run.Replay.Number, Generation: run.Replay.Generation})
	if err != nil {
		return command.Failed(err)
	}
	name := admin.GenerationName(of.Name, run.Replay.Generation)
	fmt.Fprintf(c.Err, "rebuild %d fills generation %d of %s; when it has caught up:\n  %s\n", run.Replay.Number, run.Replay.Generation, of.Name,
		switchLine(c, of.Name, run.Replay.Number))
	run.Counts = one.Counts
	run.Report = func(p admin.ReplayProgress) { fmt.Fprintln(c.Err, terminal.Line(rebuilt(p))) }
	if live != nil {
		live.Add(name, one)
		run.Report = func(admin.ReplayProgress) {}
	}
	is, err := run.Run(ctx, func(ctx context.Context, _ consumer.Generation) error {
		_, err := running.All(ctx, map[string]running.Consumer{name: one}, nil, nil)
		return err
	})
	closeLive()
	return rebuildResult(c, run, is, err)
}

// openRebuildLog returns the live line and the log for a rebuild. Without a terminal, live is nil.
func openRebuildLog(c *command.CLI) (live *running.Live, log *slog.Logger, end func(), err error) {
	stderr, end := c.Err, func() {}
	if c.ErrTerminal {
		live = running.NewLive(c.Raw.Err)
		stderr, end = terminal.Text(live), sync.OnceFunc(live.Close)
	}
	log, _, err = c.Log(stderr)
	if err != nil {
		end()
	}
	return live, log, end, err
}

// beginRebuild records a new rebuild in the store, or takes over a recorded rebuild.
func beginRebuild(ctx context.Context, c *command.CLI, a *assembly.Assembly, of *policy.Consumer, r *replayOptions) (run *rebuild.Runner, end func(), err error) {
	st := a.StoreOf(of)
	run = &rebuild.Runner{Store: st, Token: store.NewToken(), Who: r.who}
	source := a.Policy().Source(of.From)
	act := store.Act{Verb: "rebuild start", Who: r.who, Why: r.why}
	switch {
	case r.resume > 0:
		act.Verb = "rebuild resume"
		if run.Replay, err = st.Replay(ctx, r.resume); err == nil && (run.Replay.Kind != admin.ReplayRebuild || run.Replay.Consumer != of.Name) {
			return nil, nil, command.UsageError("replay %d is no rebuild of consumer %s; semel rebuild status shows them", r.resume, of.Name)
		}
		run.Replay, err = st.TakeReplay(ctx, r.resume, run.Token, replay.Lease, act)
	case source.Webhook != nil:
		err = fmt.Errorf("source %s receives webhooks, which cannot be read again", source.Name)
	case source.File != nil && source.File.Path == shape.Stdin:
		err = fmt.Errorf("source %s is the standard input, which cannot be read again", source.Name)
	default:
		run.Replay, err = rebuild.Open(ctx, st, admin.Replay{Consumer: of.Name, Progress: admin.ReplayProgress{Range: "the whole of " + source.Name}}, run.Token, act)
		if err == nil && r.pauseLive {
			err = st.Pause(ctx, of.Name, true, store.Act{Verb: "pause", Who: r.who, Why: "while it is rebuilt: " + r.why})
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if r.perSecond > 0 {
		name := admin.GenerationName(of.Name, run.Replay.Generation)
		if err = st.Limit(ctx, name, r.perSecond, store.Act{Verb: "limit", Who: r.who, Why: r.why}); err != nil {
			return nil, nil, err
		}
	}
	run.Far, end, err = a.Far(of, run.Replay.Generation)
	return run, end, err
}

// rebuilt returns the progress of a rebuild as text.
func rebuilt(p admin.ReplayProgress) string {
	percent, left := settledOf(p)
	return fmt.Sprintf("%s; %.1f %% of the source is settled, %d are left", replay.Sum(p.Counts), percent, left)
}

// settledOf returns how much of a rebuild's source has been processed, in percent. The result left is the
// number of records of topics, or of bytes of a file, that have not been processed.
func settledOf(p admin.ReplayProgress) (percent float64, left int64) {
	ends := int64(0)
	for _, l := range p.Lanes {
		left += max(l.To-l.After, 0)
		ends += l.To
	}
	if ends == 0 {
		return 100, left
	}
	return 100 * float64(ends-left) / float64(ends), left
}

// rebuildLine returns the words of a `semel rebuild` command for the rebuild with this number.
func rebuildLine(verb, name string, number int64) []string {
	return []string{"rebuild", verb, fmt.Sprint(number), "--consumer", name, "--because", "WHY"}
}

func resumeRebuild(c *command.CLI, name string, number int64) string {
	return c.Suggest("rebuild", "start", name, "--resume", fmt.Sprint(number), "--because", "WHY")
}

func switchLine(c *command.CLI, name string, number int64) string {
	return c.Suggest(rebuildLine("switch", name, number)...)
}

func rebuildResult(c *command.CLI, run *rebuild.Runner, is generations.State, err error) error {
	r := &run.Replay
	if c.JSON {
		if e := c.WriteJSON(struct {
			Number     int64              `json:"number"`
			Generation int64              `json:"generation"`
			State      string             `json:"state"`
			Counts     admin.ReplayCounts `json:"counts"`
		}{r.Number, r.Generation, is.String(), r.Progress.Counts}); e != nil {
			return e
		}
	} else {
		far := rebuilt(r.Progress)
		if is == generations.Dropped { // the drop also removes the position of the rebuild
			far = replay.Sum(r.Progress.Counts)
		}
		fmt.Fprintf(c.Out, "rebuild %d, generation %d is %v: %s\n", r.Number, r.Generation, is, far)
	}
	if is == generations.Building && (err == nil || errors.Is(err, context.Canceled)) {
		fmt.Fprintln(c.Err, terminal.Line("continue it: "+resumeRebuild(c, r.Consumer, r.Number)))
	}
	if is == generations.Dropped && errors.Is(err, generations.ErrNotUsable) {
		err = nil
	}
	return command.Failed(err)
}
