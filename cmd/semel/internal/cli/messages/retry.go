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
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// retryFlags has the flags of the commands retry and send.
type retryFlags struct {
	filter
	verb                         admin.Verb
	all, dryRun, inProcess, wait bool
	// With the field force, dead letters of a topic are retried even if they may have been applied before.
	force bool
	rate  float64
	// topic is the dead-letter topic whose records are retried. If topic is empty, rows of the store are
	// retried.
	topic    string
	who, why string
}

func retryCommand(c *command.CLI, of subject) *cobra.Command {
	r := &retryFlags{verb: admin.Retry}
	if of.intents {
		r.verb = admin.Send
	}
	r.legal = append(r.verb.From(), store.StateCompleted) // applied messages are not retried, but the results list them
	cmd := &cobra.Command{
		Use:   "retry [NUMBER...] --because TEXT",
		Short: "Retry " + of.word + "s now",
		RunE:  func(cmd *cobra.Command, args []string) error { return r.run(c, cmd, args) },
	}
	cmd.Long = `Retry messages now; a running consumer processes them. --wait, --run and
--dry-run print what is predicted, and retry messages of one key in order.
Whether a handler will succeed cannot be predicted. Attempts stay counted. A
message that has no attempts left gets one more attempt.`
	if of.intents {
		cmd.Long = `Retry intents now, suppressed ones too. A running sender sends them, or this
command with --run. Attempts stay counted. An intent that has no attempts left
gets one more attempt.`
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.all, "all", false, "all that the filters choose")
	flags.BoolVar(&r.dryRun, "dry-run", false, "only predict the results")
	flags.BoolVar(&r.inProcess, "run", false, "process them here, and print the results")
	flags.BoolVar(&r.wait, "wait", false, "wait for a running consumer, and print the results")
	flags.Float64Var(&r.rate, "rate", 0, "retry at most so many a second, with --wait or --run")
	if !of.intents {
		topicFlag(cmd, &r.topic)
		flags.BoolVar(&r.force, "force", false, "with --topic, also those of unknown outcome")
	}
	command.YesFlag(cmd, &r.skipConfirmation)
	command.RecordFlags(cmd, &r.who, &r.why)
	r.add(c, cmd, of.standard(r.verb)...)
	if of.intents {
		return ofOneSender(c, cmd)
	}
	return cmd
}

func (r *retryFlags) run(c *command.CLI, cmd *cobra.Command, args []string) error {
	switch {
	case r.inProcess && r.wait:
		return command.UsageError("give --wait or --run, not both: --wait waits for a running consumer, --run processes the messages here")
	case r.rate < 0:
		return command.UsageError("--rate %v: give how many messages a second, or 0 for no limit", r.rate)
	case r.topic == "" && r.force:
		return command.UsageError("--force is for dead letters of a topic; of a row it is known whether it took effect")
	case r.topic != "" && (len(args) > 0 || !r.all):
		return command.UsageError("with --topic say --all, with filters; a number names a row of the store")
	case r.topic != "" && cmd.Flags().Changed("state"):
		return command.UsageError("--state chooses rows of the store; a dead letter of a topic has none")
	}
	chosen, err := r.targets(c, cmd, r.all, args)
	if err != nil {
		return err
	}
	if err := command.CheckRecord(&r.who, r.why, r.dryRun); err != nil {
		return err
	}
	switch {
	case r.topic != "":
		return retryTopic(cmd.Context(), c, r)
	case r.inProcess || r.wait || r.rate > 0 || r.dryRun:
		return retryRows(cmd.Context(), c, r, chosen)
	}
	chosen.DueLater = r.all // a row that is due already needs no retry
	return execute(cmd.Context(), c, operate.Order{Verb: r.verb, Filter: chosen, Group: r.group, Who: r.who, Why: r.why}, &r.filter)
}

func retryRows(ctx context.Context, c *command.CLI, r *retryFlags, chosen store.RowFilter) error {
	a, err := c.OpenBox(ctx, r.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if chosen.Consumer, err = c.ActiveName(ctx, a, chosen.Consumer); err != nil {
		return err
	}
	if r.inProcess && len(a.Policy().Consumers) == 0 {
		return command.UsageError("--run needs the policy of the consumer, which has its handler: --config FILE")
	}
	return (&retry{CLI: c, assembly: a, box: command.BoxOf(a.Stores[0]), retryFlags: r, chosen: chosen}).retryAll(ctx)
}

// retry is a retry that waits for the results of the messages.
type retry struct {
	*command.CLI
	*retryFlags
	assembly *assembly.Assembly
	box      operate.Box
	chosen   store.RowFilter
	// fromTopic is the dead-letter topic; nil for a retry of rows. The field plan has the latest predictions for
	// the topic's dead letters.
	fromTopic *topicOf
	plan      *operate.TopicPlan
}

// retryAll predicts the results. If the retry is not a dry run, the method then retries the messages and
// prints the results.
func (d *retry) retryAll(ctx context.Context) error {
	all, err := d.predict(ctx)
	if err != nil {
		return command.Failed(err)
	}
	if len(all) == 0 {
		fmt.Fprintln(d.Err, "0 messages match")
		if err := pointAtReasons(ctx, d.CLI, d.assembly, d.chosen); err != nil {
			return err
		}
	}
	if d.dryRun || len(all) == 0 {
		return d.conclude(all, nil)
	}
	if err := d.confirm(all); err != nil {
		return err
	}
	all, err = d.executeRetry(ctx, all)
	return d.conclude(all, err)
}

// confirm asks for confirmation before the command retries all messages without a filter.
func (d *retry) confirm(all []operate.Letter) error {
	if !d.unrestricted || d.skipConfirmation || d.fromTopic != nil {
		return nil
	}
	counts := tally{}
	for _, l := range all {
		counts.add(l.Consumer, l.Reason)
	}
	return confirmAll(d.CLI, "retry", "message", counts.total(), counts.formatLines())
}

func (d *retry) predict(ctx context.Context) (all []operate.Letter, err error) {
	if d.fromTopic != nil {
		if d.plan, err = d.fromTopic.plan(ctx, d); err != nil {
			return nil, err
		}
		return d.plan.Letters, nil
	}
	numbers, err := d.box.Letters(ctx, d.chosen, d.group)
	if err != nil {
		return nil, err
	}
	return d.box.Preview(ctx, d.verb, numbers, command.RefuseIfUnworked(ctx, d.assembly, d.assembly.Stores[0]))
}

// executeRetry waits until no other process retries messages of the same consumers. executeRetry then predicts the
// results again from the current state of the store, and retries.
func (d *retry) executeRetry(ctx context.Context, before []operate.Letter) (all []operate.Letter, err error) {
	s, taken := d.assembly.Stores[0], d.consumers(before)
	kept, turn, err := operate.TakeTurn(ctx, s, taken, operate.TurnLease, func(consumer string) {
		d.Remark("another retry of consumer %s is running: this one waits for it", consumer)
	})
	if err != nil {
		return before, err
	}
	defer func() { err = cmp.Or(err, turn.End()) }()
	if all, err = d.predict(kept); err != nil {
		return all, err
	}
	if d.fromTopic == nil { // newer messages could belong to consumers that another process retries
		all = slices.DeleteFunc(all, func(l operate.Letter) bool { return l.Consumer != "" && !slices.Contains(taken, l.Consumer) })
	}
	if !d.JSON {
		fmt.Fprintln(d.Out, d.Wrapped(predictions(all), textIndent))
	}
	o := operate.Replay{Verb: d.verb, Who: d.who, Why: d.why, Rate: d.rate}
	if d.inProcess {
		o.Work = d.work
	} else {
		if err := printPaused(kept, d.CLI, s, taken); err != nil {
			return all, err
		}
		o.Rouse = func(ctx context.Context, consumer string) { notify(ctx, s, []string{consumer}) }
		o.Alone = func() {
			d.Remark("still waiting for a running consumer; --run processes them in this command")
		}
	}
	progress := d.progress(all)
	defer progress.Close()
	o.Progress = func(all []operate.Letter) { progress.Set(countEnded(all)) }
	if d.fromTopic == nil {
		return d.box.Replay(kept, all, o)
	}
	err = d.fromTopic.receive(kept, d, d.plan)
	if err == nil {
		_, err = d.box.Replay(kept, d.plan.Letters, o)
	}
	d.plan.Copies()
	return d.plan.Letters, err
}

// progress returns a progress bar on a terminal. Without a terminal, or if a consumer's log goes to the same
// terminal, the bar shows nothing.
func (d *retry) progress(all []operate.Letter) interface {
	Set(done int)
	Close()
} {
	if d.ErrTerminal && !d.inProcess {
		return running.NewBar(d.Raw.Err, len(all))
	}
	return running.NewLines(d.Err, len(all), time.Now)
}

// countEnded returns the number of messages with a known result.
func countEnded(all []operate.Letter) (n int) {
	for _, l := range all {
		if l.Happened != "" {
			n++
		}
	}
	return n
}

// work runs one of the policy's consumers until this consumer has processed the given rows.
func (d *retry) work(ctx context.Context, consumer string, numbers []int64) error {
	if why, err := command.PausedWhy(ctx, d.assembly.Stores[0], consumer); why != "" || err != nil {
		return cmp.Or(err, fmt.Errorf("%s: its messages are due now, and wait until semel consumers resume resumes it", why))
	}
	worker, err := d.assembly.Worker(ctx, consumer)
	if err != nil {
		return err
	}
	return worker.Work(ctx, numbers...)
}

// consumers returns the names of the consumers whose messages are retried.
func (d *retry) consumers(all []operate.Letter) []string {
	if d.fromTopic != nil {
		return []string{d.fromTopic.joiner.Kept}
	}
	names := map[string]bool{}
	for _, l := range all {
		if l.Consumer != "" {
			names[l.Consumer] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
