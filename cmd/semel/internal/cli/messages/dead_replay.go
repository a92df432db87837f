package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// deadReplaying are the flags of a replay of letters.
type deadReplaying struct {
	filter
	all, dryRun, here bool
	// force: also letters of which nobody knows whether they took effect.
	force bool
	rate  float64
	// ofTopic is the topic whose letters are replayed; empty: those of the store.
	ofTopic  string
	who, why string
}

func deadReplay(c *command.CLI) *cobra.Command {
	r := &deadReplaying{}
	cmd := &cobra.Command{
		Use:   "replay [NUMBER...] --because TEXT",
		Short: "Process dead letters again",
		Long: `First predict the results: how many dead letters would be applied, are skipped
because their identity is applied, are conflicts, or are refused, and why.
--dry-run stops here.

Then retry the dead letters, oldest first; those with the same key or identity
one after the other. A running consumer processes them, or with --run this
command with the policy's handler. At the end, print the results and which of
them differ from the prediction.

Dead letters keep their identity, so a dead letter and its copies take effect
once. Two replays of one consumer wait for each other. Start the command again
to continue after an interruption.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.rate < 0 {
				return command.UsageError("--rate %v: give how many letters a second, or 0 for no limit", r.rate)
			}
			chosen, err := r.targetRows(c, cmd, args)
			if err != nil {
				return err
			}
			if err := command.CheckRecord(&r.who, r.why, r.dryRun); err != nil {
				return err
			}
			if r.ofTopic != "" {
				return replayTopic(cmd.Context(), c, r)
			}
			return replayRows(cmd.Context(), c, r, chosen)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.all, "all", false, "all rows that match the filters, instead of numbers")
	flags.BoolVar(&r.dryRun, "dry-run", false, "only predict the results")
	flags.BoolVar(&r.here, "run", false, "process them in this command, with the policy's handler")
	flags.BoolVar(&r.force, "force", false, "with --topic and --run, also dead letters whose outcome is unknown")
	topicFlag(cmd, &r.ofTopic)
	flags.Float64Var(&r.rate, "rate", 0, "how many letters become due in a second at most; 0: no limit")
	command.YesFlag(cmd, &r.yes)
	command.RecordFlags(cmd, &r.who, &r.why)
	r.addGroup(cmd)
	return c.WithConfig(r.add(c, cmd, aside()...))
}

// targetRows are the rows that are meant; with a topic the flags choose among its letters.
func (r *deadReplaying) targetRows(c *command.CLI, cmd *cobra.Command, args []string) (store.RowFilter, error) {
	switch {
	case r.ofTopic == "" && r.force:
		return store.RowFilter{}, command.UsageError("--force is for letters of a topic; of a row it is known whether it took effect")
	case r.ofTopic != "" && (len(args) > 0 || !r.all):
		return store.RowFilter{}, command.UsageError("with --topic say --all, with filters; a number names a row of the store")
	case r.ofTopic != "" && cmd.Flags().Changed("state"):
		return store.RowFilter{}, command.UsageError("--state chooses rows of the store; a letter of a topic has none")
	}
	return r.targets(c, cmd, r.all, args)
}

// replayRows replays rows of the one store that their numbers belong to.
func replayRows(ctx context.Context, c *command.CLI, r *deadReplaying, chosen store.RowFilter) error {
	a, err := c.OpenBox(ctx, r.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if chosen.Consumer, err = c.ActiveName(ctx, a, chosen.Consumer); err != nil {
		return err
	}
	if r.here && len(a.Policy().Consumers) == 0 {
		return command.UsageError("--run needs the policy of the consumer, which has its handler: --config FILE")
	}
	replay := &deadReplayed{CLI: c, assembly: a, box: command.BoxOf(a.Stores[0]), deadReplaying: r, chosen: chosen}
	letters, err := replay.predict(ctx)
	if err != nil {
		return command.Failed(err)
	}
	if len(letters) == 0 {
		fmt.Fprintln(c.Err, "0 letters match")
		if err := pointAtReasons(ctx, c, a, chosen); err != nil {
			return err
		}
	}
	if r.dryRun || len(letters) == 0 {
		return concludeReplay(c, r, letters, nil)
	}
	if err := replay.confirm(letters); err != nil {
		return err
	}
	letters, err = replay.carry(ctx, letters)
	return concludeReplay(c, r, letters, err)
}

// deadReplayed is a replay of rows of one store.
type deadReplayed struct {
	*command.CLI
	*deadReplaying
	assembly *assembly.Assembly
	box      operate.Box
	chosen   store.RowFilter
	// topic is nil of a replay of rows; plan is what was foretold of its letters last.
	topic *deadTopic
	plan  *operate.TopicPlan
}

// confirm asks before all letters are replayed and no filter narrows them.
func (d *deadReplayed) confirm(letters []operate.Letter) error {
	if !d.everything || d.yes {
		return nil
	}
	counts := tally{}
	for _, l := range letters {
		counts.add(l.Consumer, l.Reason)
	}
	return confirmAll(d.CLI, "replay", "letter", counts.total(), counts.lines())
}

func (d *deadReplayed) predict(ctx context.Context) (letters []operate.Letter, err error) {
	if d.topic != nil {
		if d.plan, err = d.topic.plan(ctx, d); err != nil {
			return nil, err
		}
		return d.plan.Letters, nil
	}
	numbers, err := d.box.Letters(ctx, d.chosen, d.deadReplaying.group)
	if err != nil {
		return nil, err
	}
	return d.box.Preview(ctx, numbers, command.RefuseIfUnworked(ctx, d.assembly, d.assembly.Stores[0]))
}

// carry takes the turn of the consumers, foretells anew what stands then, and replays.
func (d *deadReplayed) carry(ctx context.Context, letters []operate.Letter) (all []operate.Letter, err error) {
	s, taken := d.assembly.Stores[0], d.consumers(letters)
	kept, turn, err := operate.TakeTurn(ctx, s, taken, operate.TurnLease, func(consumer string) {
		d.Remark("another replay of consumer %s is under way: this one waits until it has ended", consumer)
	})
	if err != nil {
		return letters, err
	}
	defer func() { err = cmp.Or(err, turn.End()) }()
	if letters, err = d.predict(kept); err != nil {
		return letters, err
	}
	if d.topic == nil { // what came meanwhile may be of consumers whose turn is another's
		letters = slices.DeleteFunc(letters, func(l operate.Letter) bool { return l.Consumer != "" && !slices.Contains(taken, l.Consumer) })
	}
	if !d.JSON {
		fmt.Fprintln(d.Out, "foretold: "+fatesOf(letters, func(l operate.Letter) operate.Fate { return l.Prediction }))
	}
	o := operate.Replay{Who: d.who, Why: d.why, Rate: d.rate}
	if d.here {
		o.Work = d.work
	} else {
		o.Rouse = func(ctx context.Context, consumer string) {
			notify(ctx, s, []operate.Result{{Consumer: consumer, Result: operate.Due}})
		}
		o.Alone = func() {
			d.Remark("still waiting for a running consumer; --run processes them in this command")
		}
	}
	progress := d.progress(letters)
	defer progress.Close()
	o.Progress = func(all []operate.Letter) { progress.Set(ended(all)) }
	if d.topic == nil {
		return d.box.Replay(kept, letters, o)
	}
	err = d.topic.receive(kept, d, d.plan)
	if err == nil {
		_, err = d.box.Replay(kept, d.plan.Letters, o)
	}
	d.plan.Copies()
	return d.plan.Letters, err
}

// progress shows how far a replay is: on a terminal a bar, where no log of a consumer is written
// beside it.
func (d *deadReplayed) progress(letters []operate.Letter) interface {
	Set(done int)
	Close()
} {
	if d.ErrTerminal && !d.here {
		return running.NewBar(d.Raw.Err, len(letters))
	}
	return running.NewLines(d.Err, len(letters), time.Now)
}

// ended counts the letters of which it is known what happened.
func ended(all []operate.Letter) (n int) {
	for _, l := range all {
		if l.Happened != "" {
			n++
		}
	}
	return n
}

func (d *deadReplayed) work(ctx context.Context, consumer string, numbers []int64) error {
	due := make([]operate.Result, len(numbers))
	for i, n := range numbers {
		due[i] = operate.Result{Number: n, Consumer: consumer, Result: operate.Due}
	}
	return work(ctx, d.CLI, d.assembly, due)
}

// consumers are those whose letters are replayed.
func (d *deadReplayed) consumers(all []operate.Letter) []string {
	if d.topic != nil {
		return []string{d.topic.joiner.Kept}
	}
	names := map[string]bool{}
	for _, l := range all {
		if l.Consumer != "" {
			names[l.Consumer] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
