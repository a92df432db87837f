package replays

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// switchFlags has the flags of the commands `rebuild switch` and `rebuild drop`.
type switchFlags struct {
	who, why       string
	catchUp, fence time.Duration
	allow, dryRun  bool
}

func rebuildSwitch(c *command.CLI) *cobra.Command {
	w := &switchFlags{}
	cmd := &cobra.Command{
		Use:   "switch NUMBER --because TEXT",
		Short: "Switch to a rebuilt generation",
		Long: `Make the generation of a rebuild the active one when it has caught up, in one
commit. Running consumers continue in the new active generation.

The command waits until the rebuild is near the end of its source, stops all
processing in the active generation, and waits until the rebuild has reached
the end. It gives up without a change if the rebuild does not reach the end
within --fence, or if messages of the new generation are parked. If it is
killed, processing continues after --fence.

Exit codes: 0 done; 1 not done and nothing changed, unless the error says that
this is unknown; 4 the new generation has parked messages (--allow-parked).`,
		Args: oneReplay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return ofRebuild(cmd.Context(), c, args[0], w, switchTo)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&w.catchUp, "timeout", 10*time.Minute, "how long to wait for the rebuild")
	flags.DurationVar(&w.fence, "fence", 30*time.Second, "longest stop of processing")
	flags.BoolVar(&w.allow, "allow-parked", false, "also with parked or waiting messages")
	flags.BoolVar(&w.dryRun, "dry-run", false, "only show the progress of the rebuild")
	command.RecordFlags(cmd, &w.who, &w.why)
	command.RefuseEmpty(cmd, "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "the consumer, if there are several stores"))
}

// oneReplay returns a usage error unless there is exactly one argument, the number of a rebuild.
func oneReplay(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.UsageError("give one number of a rebuild; semel rebuild status shows them")
	}
	return nil
}

func replayNumber(arg string) (int64, error) {
	number, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || number < 1 {
		return 0, command.UsageError("%q is no number of a rebuild; semel rebuild status shows them", arg)
	}
	return number, nil
}

// rebuiltOf is a recorded rebuild with its consumer and its store.
type rebuiltOf struct {
	consumer *policy.Consumer
	replay   admin.Replay
	store    interface {
		rebuild.Store
		store.Inbox
	}
	rebuildReader rebuild.Far
}

// ofRebuild calls the function do with the rebuild whose number is arg.
func ofRebuild(ctx context.Context, c *command.CLI, arg string, w *switchFlags, do func(context.Context, *command.CLI, *rebuiltOf, *switchFlags) error) error {
	number, err := replayNumber(arg)
	if err != nil {
		return err
	}
	if w.fence > admin.LongestFence {
		return command.UsageError("--fence %v: nobody applies anything meanwhile, so it is %v at most", w.fence, admin.LongestFence)
	}
	if err := command.CheckRecord(&w.who, w.why, w.dryRun); err != nil {
		return err
	}
	p, err := c.Load()
	if err != nil {
		return err
	}
	a, err := openRebuilt(ctx, c, p)
	if err != nil {
		return err
	}
	defer c.Close(a)
	one := &rebuiltOf{store: a.Stores[0]}
	if one.replay, err = one.store.Replay(ctx, number); err != nil {
		return command.Failed(err)
	}
	of := p.Consumer(one.replay.Consumer)
	switch {
	case one.replay.Kind != admin.ReplayRebuild:
		return command.UsageError("%d is the number of a replay, and not of a rebuild; semel rebuild status shows them", number)
	case of == nil:
		return command.UsageError("rebuild %d is of consumer %s, which %s does not have", number, one.replay.Consumer, c.Config)
	case c.Consumer != "" && c.Consumer != of.Name:
		return command.UsageError("rebuild %d is of consumer %s, and not of %s", number, of.Name, c.Consumer)
	case !p.Generational(of):
		return command.Failed(*p.MayRebuild(of))
	}
	one.consumer = of
	far, end, err := a.Far(of, one.replay.Generation)
	if err != nil {
		return command.Failed(err)
	}
	defer end()
	one.rebuildReader = far
	return do(ctx, c, one, w)
}

// openRebuilt opens the store of the consumer in --consumer. Without --consumer, openRebuilt opens the only
// store of the policy.
func openRebuilt(ctx context.Context, c *command.CLI, p *policy.Policy) (*assembly.Assembly, error) {
	of := p.Consumer(c.Consumer)
	switch {
	case c.Consumer != "" && of == nil:
		return nil, c.NoConsumer(p, c.Consumer)
	case of != nil:
		return c.OpenChecked(ctx, p, of.Store)
	case len(p.Databases()) != 1:
		return nil, command.UsageError("%s has %d stores, each with numbers of its own; name the consumer with --consumer", c.Config, len(p.Databases()))
	}
	return c.OpenChecked(ctx, p, p.Databases()[0].Name)
}

type switchOutput struct {
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	DryRun   bool   `json:"dry_run"`
}

func switchTo(ctx context.Context, c *command.CLI, of *rebuiltOf, w *switchFlags) error {
	if w.dryRun {
		return wouldSwitch(ctx, c, of)
	}
	if of.replay.Left == 0 && of.replay.State != admin.ReplayDone {
		return command.Failed(fmt.Errorf("no process runs rebuild %d, so it does not reach the end of its source; resume it: %s", of.replay.Number,
			resumeRebuild(c, of.consumer.Name, of.replay.Number)))
	}
	s := rebuild.Switch{Store: of.store, Consumer: of.consumer.Name, To: of.replay.Generation, Far: of.rebuildReader, CatchUp: w.catchUp, Fence: w.fence, AllowParked: w.allow,
		Act: store.Act{Verb: "rebuild switch", Who: w.who, Why: w.why}, Report: func(what string) { fmt.Fprintln(c.Err, terminal.Line("waiting: "+what)) }}
	from, err := s.Do(ctx)
	if errors.Is(err, rebuild.ErrParked) {
		return command.Found(err)
	}
	if err != nil {
		return command.Failed(err)
	}
	if c.JSON {
		return c.WriteJSON(switchOutput{of.replay.Number, of.consumer.Name, from, s.To, false})
	}
	_, err = fmt.Fprintf(c.Out, "generation %d of %s is active; generation %d is kept until it is dropped:\n  %s\n", s.To, of.consumer.Name, from,
		c.Suggest(rebuildLine("drop", of.consumer.Name, of.replay.Number)...))
	return command.Failed(err)
}

// couldSwitch is the JSON output of a dry run of a switch.
type couldSwitch struct {
	switchOutput
	// State is the state of the rebuild. Run reports whether a process runs the rebuild.
	State admin.ReplayState `json:"state"`
	Run   bool              `json:"run"`
	// SettledPercent is the processed part of the source. Left is the number of records of topics, or of bytes
	// of a file, that have not been processed.
	SettledPercent float64              `json:"settled_percent"`
	Left           int64                `json:"left"`
	Progress       admin.ReplayProgress `json:"progress"`
}

// wouldSwitch prints the progress of a rebuild.
func wouldSwitch(ctx context.Context, c *command.CLI, of *rebuiltOf) error {
	ends, err := of.rebuildReader.Ends(ctx)
	if err != nil {
		return command.Failed(err)
	}
	done, err := of.rebuildReader.Done(ctx)
	if err != nil {
		return command.Failed(err)
	}
	p := of.replay.Progress
	p.Lanes = nil
	for _, lane := range slices.Sorted(maps.Keys(ends)) {
		p.Lanes = append(p.Lanes, admin.ReplayLane{Lane: lane, To: ends[lane], After: done[lane]})
	}
	if !c.JSON {
		_, err = fmt.Fprintln(c.Out, rebuilt(p))
		return command.Failed(err)
	}
	says := couldSwitch{switchOutput: switchOutput{of.replay.Number, of.consumer.Name, 0, of.replay.Generation, true},
		State: of.replay.State, Run: of.replay.Left > 0, Progress: p}
	says.SettledPercent, says.Left = settledOf(p)
	all, err := of.store.Generations(ctx, of.consumer.Name)
	for _, g := range all {
		if g.State == generations.Active {
			says.From = g.Number
		}
	}
	if err != nil {
		return command.Failed(err)
	}
	return c.WriteJSON(says)
}

func rebuildDrop(c *command.CLI) *cobra.Command {
	w := &switchFlags{}
	cmd := &cobra.Command{
		Use:   "drop NUMBER --because TEXT",
		Short: "Remove an old or unwanted generation",
		Long: `Remove the markers and rows of the generation that was active before the switch
to this rebuild. Without a switch, remove the rebuild's own generation.

The command removes some at a time; after an interruption the next call
continues. Rows of your own tables stay: delete them yourself.`,
		Args: oneReplay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return ofRebuild(cmd.Context(), c, args[0], w, drop)
		},
	}
	cmd.Flags().BoolVar(&w.dryRun, "dry-run", false, "only show which generation would be removed")
	command.RecordFlags(cmd, &w.who, &w.why)
	command.RefuseEmpty(cmd, "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "the consumer, if there are several stores"))
}

// dropOutput is the JSON output of `rebuild drop`.
type dropOutput struct {
	Number     int64  `json:"number"`
	Consumer   string `json:"consumer"`
	Generation int64  `json:"generation"`
	Removed    int    `json:"removed"`
	DryRun     bool   `json:"dry_run"`
}

func drop(ctx context.Context, c *command.CLI, of *rebuiltOf, w *switchFlags) error {
	name := of.consumer.Name
	all, err := of.store.Generations(ctx, name)
	if err != nil {
		return command.Failed(err)
	}
	number, err := rebuild.Dropped(all, of.replay.Generation)
	if err != nil {
		return command.Failed(err)
	}
	d := dropOutput{Number: of.replay.Number, Consumer: name, Generation: number, DryRun: w.dryRun}
	if !w.dryRun {
		if d.Removed, err = rebuild.Drop(ctx, of.store, name, number, store.Act{Verb: "rebuild drop", Who: w.who, Why: w.why}); err != nil {
			return command.Failed(err)
		}
	}
	if c.JSON {
		return c.WriteJSON(d)
	}
	if w.dryRun {
		_, err = fmt.Fprintf(c.Out, "would remove what is kept of generation %d of %s\n", number, name)
		return command.Failed(err)
	}
	_, err = fmt.Fprintf(c.Out, "removed %d records of generation %d of %s; the rows of your tables are yours:\n  delete from … where generation = %d\n", d.Removed, number, name, number)
	return command.Failed(err)
}
