package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// switching is a switch, or a drop, that is wanted.
type switching struct {
	who, why       string
	catchUp, fence time.Duration
	allow, dry     bool
}

func replaySwitch(c *common) *cobra.Command {
	w := &switching{}
	cmd := &cobra.Command{
		Use:   "switch NUMBER --consumer NAME --because TEXT",
		Short: "Make a rebuilt generation the active one",
		Long: `Switch waits until the rebuild has come near the end of its source, keeps
everybody from applying anything in the active generation, waits until the
rebuild has come to that end, and makes its generation the active one, in one
commit. Consumers that run go on in it by themselves.

It gives up, and leaves everything as it was, where the rebuild does not come so
far within --fence, and where messages of the new generation were set aside.
Killed, it leaves nothing but that --fence, which ends by itself.

Exit codes: 0 done; 1 it could not be done, and nothing has changed, unless the
error says that this is not known; 4 messages of the new generation have not
taken effect (--allow-parked).`,
		Args: oneReplay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ofRebuild(cmd.Context(), args[0], w, c.switchTo)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&w.catchUp, "timeout", 10*time.Minute, "how long the rebuild may take to come near the end of its source")
	flags.DurationVar(&w.fence, "fence", 30*time.Second, "for how long at most nobody applies anything, 10m at most")
	flags.BoolVar(&w.allow, "allow-parked", false, "switch although messages of the new generation have not taken effect")
	flags.BoolVar(&w.dry, "dry-run", false, "only say how far the rebuild is")
	recordFlags(cmd, &w.who, &w.why)
	refuseEmpty(cmd, "consumer")
	return c.withConfig(c.withConsumer(cmd, "whose generation is switched"))
}

// oneReplay wants the number of one.
func oneReplay(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("give one number of a replay; semel replay status shows them")
	}
	return nil
}

func replayNumber(arg string) (int64, error) {
	number, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || number < 1 {
		return 0, usage("%q is no number of a replay; semel replay status shows them", arg)
	}
	return number, nil
}

// rebuiltOf is a rebuild of a consumer.
type rebuiltOf struct {
	consumer *policy.Consumer
	replay   admin.Replay
	store    interface {
		rebuild.Store
		store.Inbox
	}
	far rebuild.Far
}

// ofRebuild has something done with the rebuild of a number.
func (c *common) ofRebuild(ctx context.Context, arg string, w *switching, do func(context.Context, *rebuiltOf, *switching) error) error {
	number, err := replayNumber(arg)
	if err != nil {
		return err
	}
	if c.consumer == "" {
		return usage("--consumer is missing: say whose generation it is")
	}
	if w.fence > admin.LongestFence {
		return usage("--fence %v: nobody applies anything meanwhile, so it is %v at most", w.fence, admin.LongestFence)
	}
	if err := recorded(&w.who, w.why, w.dry); err != nil {
		return err
	}
	p, err := c.load()
	if err != nil {
		return err
	}
	of := p.Consumer(c.consumer)
	if of == nil {
		return c.noConsumer(p, c.consumer)
	}
	if !p.Generational(of) {
		return failed(*p.MayRebuild(of))
	}
	a, err := c.openChecked(ctx, p, of.Store)
	if err != nil {
		return err
	}
	defer c.close(a)
	one := &rebuiltOf{consumer: of, store: a.StoreOf(of)}
	if one.replay, err = one.store.Replay(ctx, number); err != nil {
		return failed(err)
	}
	if one.replay.Kind != admin.ReplayRebuild || one.replay.Consumer != of.Name {
		return usage("replay %d is no rebuild of consumer %s; semel replay status shows them", number, of.Name)
	}
	far, end, err := a.Far(of, one.replay.Generation)
	if err != nil {
		return failed(err)
	}
	defer end()
	one.far = far
	return do(ctx, one, w)
}

// switched is what a switch says.
type switched struct {
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	DryRun   bool   `json:"dry_run"`
}

func (c *common) switchTo(ctx context.Context, of *rebuiltOf, w *switching) error {
	if w.dry {
		return c.wouldSwitch(ctx, of)
	}
	if of.replay.Left == 0 && of.replay.State != admin.ReplayDone {
		return failed(fmt.Errorf("nobody runs rebuild %d, so that it does not come to the end of its source: %s", of.replay.Number,
			shell("semel", "replay", "start", "--config", c.config, "--consumer", of.consumer.Name, "--rebuild", "--resume", fmt.Sprint(of.replay.Number), "--because", "…")))
	}
	s := rebuild.Switch{Store: of.store, Consumer: of.consumer.Name, To: of.replay.Generation, Far: of.far, CatchUp: w.catchUp, Fence: w.fence, AllowParked: w.allow,
		Act: store.Act{Verb: "rebuild switch", Who: w.who, Why: w.why}, Report: func(what string) { fmt.Fprintln(c.Err, terminal.Line("waiting: "+what)) }}
	from, err := s.Do(ctx)
	if errors.Is(err, rebuild.ErrParked) {
		return found(err)
	}
	if err != nil {
		return failed(err)
	}
	if c.json {
		return c.writeJSON(switched{of.replay.Number, of.consumer.Name, from, s.To, false})
	}
	_, err = fmt.Fprintf(c.Out, "generation %d of %s is active; generation %d is kept until it is dropped:\n  %s\n", s.To, of.consumer.Name, from,
		shell("semel", "replay", "drop", "--config", c.config, "--consumer", of.consumer.Name, fmt.Sprint(of.replay.Number), "--because", "…"))
	return failed(err)
}

// couldSwitch is what a dry run of a switch says.
type couldSwitch struct {
	switched
	// State is of the replay, Run whether somebody runs it.
	State admin.ReplayState `json:"state"`
	Run   bool              `json:"run"`
	// SettledPercent is how much of the source the rebuild has settled, Left what is left of
	// it: records of topics, bytes of a file.
	SettledPercent float64              `json:"settled_percent"`
	Left           int64                `json:"left"`
	Progress       admin.ReplayProgress `json:"progress"`
}

// wouldSwitch says how far a rebuild is.
func (c *common) wouldSwitch(ctx context.Context, of *rebuiltOf) error {
	ends, err := of.far.Ends(ctx)
	if err != nil {
		return failed(err)
	}
	done, err := of.far.Done(ctx)
	if err != nil {
		return failed(err)
	}
	p := of.replay.Progress
	p.Lanes = nil
	for _, lane := range slices.Sorted(maps.Keys(ends)) {
		p.Lanes = append(p.Lanes, admin.ReplayLane{Lane: lane, To: ends[lane], After: done[lane]})
	}
	if !c.json {
		_, err = fmt.Fprintln(c.Out, rebuilt(p))
		return failed(err)
	}
	says := couldSwitch{switched: switched{of.replay.Number, of.consumer.Name, 0, of.replay.Generation, true},
		State: of.replay.State, Run: of.replay.Left > 0, Progress: p}
	says.SettledPercent, says.Left = settledOf(p)
	all, err := of.store.Generations(ctx, of.consumer.Name)
	for _, g := range all {
		if g.State == store.GenerationActive {
			says.From = g.Number
		}
	}
	if err != nil {
		return failed(err)
	}
	return c.writeJSON(says)
}

func replayDrop(c *common) *cobra.Command {
	w := &switching{}
	cmd := &cobra.Command{
		Use:   "drop NUMBER --consumer NAME --because TEXT",
		Short: "Remove what is kept of an old or an unwanted generation",
		Long: `Drop removes, some at a time, the markers and rows of the generation that was
active before this rebuild was switched to, or, if it was not, of the rebuild's
own, which ends it. The rows of your own tables are yours to delete.
Interrupted, it goes on with the next call.`,
		Args: oneReplay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ofRebuild(cmd.Context(), args[0], w, c.drop)
		},
	}
	cmd.Flags().BoolVar(&w.dry, "dry-run", false, "only say which generation would be removed")
	recordFlags(cmd, &w.who, &w.why)
	refuseEmpty(cmd, "consumer")
	return c.withConfig(c.withConsumer(cmd, "whose generation is removed"))
}

// dropped is what a drop says.
type dropped struct {
	Number     int64  `json:"number"`
	Consumer   string `json:"consumer"`
	Generation int64  `json:"generation"`
	Removed    int    `json:"removed"`
	DryRun     bool   `json:"dry_run"`
}

func (c *common) drop(ctx context.Context, of *rebuiltOf, w *switching) error {
	name := of.consumer.Name
	all, err := of.store.Generations(ctx, name)
	if err != nil {
		return failed(err)
	}
	number, err := rebuild.Dropped(all, of.replay.Generation)
	if err != nil {
		return failed(err)
	}
	d := dropped{Number: of.replay.Number, Consumer: name, Generation: number, DryRun: w.dry}
	if !w.dry {
		if d.Removed, err = rebuild.Drop(ctx, of.store, name, number, store.Act{Verb: "rebuild drop", Who: w.who, Why: w.why}); err != nil {
			return failed(err)
		}
	}
	if c.json {
		return c.writeJSON(d)
	}
	if w.dry {
		_, err = fmt.Fprintf(c.Out, "would remove what is kept of generation %d of %s\n", number, name)
		return failed(err)
	}
	_, err = fmt.Fprintf(c.Out, "removed %d records of generation %d of %s; the rows of your tables are yours:\n  delete from … where generation = %d\n", d.Removed, number, name, number)
	return failed(err)
}
