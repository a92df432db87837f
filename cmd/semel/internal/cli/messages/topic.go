package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// topicOf is the dead-letter topic of one consumer, together with the consumer's store.
type topicOf struct {
	*command.CLI
	name     string
	consumer *policy.Consumer
	assembly *assembly.Assembly
	joiner   operate.Joiner
	// remarkShown means that the user has seen a remark about dead letters of other consumers in the topic.
	remarkShown bool
}

// topicFlag adds the flag --topic, which names a dead-letter topic.
func topicFlag(cmd *cobra.Command, topic *string) {
	cmd.Flags().StringVar(topic, "topic", "", "read this dead-letter topic instead of the store")
}

// openTopic opens a dead-letter topic and the store of its consumer.
func openTopic(ctx context.Context, c *command.CLI, name, store string) (*topicOf, error) {
	switch {
	case policy.IsPlace(store):
		return nil, command.UsageError("--topic needs the policy of the consumer, which names the brokers: --config FILE")
	case c.Consumer == "":
		return nil, command.UsageError("--consumer is missing: name the consumer whose dead letters these are")
	}
	p, err := c.Load()
	if err != nil {
		return nil, err
	}
	t := &topicOf{CLI: c, name: name, consumer: p.Consumer(c.Consumer)}
	switch {
	case t.consumer == nil:
		return nil, command.UsageError("no consumer %q in %s", c.Consumer, c.Config)
	case store != "" && store != t.consumer.Store:
		return nil, command.UsageError("--store %s: consumer %s has store %s", store, t.consumer.Name, t.consumer.Store)
	}
	if err := command.HasMarkers(p, t.consumer); err != nil {
		return nil, err
	}
	if t.assembly, err = c.OpenChecked(ctx, p, t.consumer.Store); err != nil {
		return nil, err
	}
	kept, err := t.assembly.Stores[0].KeptAs(ctx, t.consumer.Name)
	if err != nil {
		c.Close(t.assembly)
		return nil, command.Failed(err)
	}
	t.joiner = operate.Joiner{Box: command.BoxOf(t.assembly.Stores[0]), Consumer: t.consumer.Name, Kept: kept, Config: t.consumer.Config()}
	return t, nil
}

// letters returns the dead letters that the flags choose, with their states in the store, in the order of
// the topic.
func (t *topicOf) letters(ctx context.Context, f *filter, now func() time.Time) ([]operate.TopicLetter, error) {
	var before time.Time
	if f.before != "" {
		at, err := command.ParseTime("before", f.before, now)
		if err != nil {
			return nil, err
		}
		before = at
	}
	var all []operate.TopicLetter
	err := t.assembly.Letters(ctx, t.consumer, t.name, func(l kafka.Letter) error {
		if f.reason != "" && string(l.Reason) != f.reason || !before.IsZero() && !l.WrittenAt.Before(before) ||
			f.kind != "" && l.Delivery.Message.Type() != f.kind {
			return nil
		}
		joined, err := t.joiner.Join(ctx, l)
		if err == nil && (f.id == "" || joined.ID == f.id) && (f.group == "" || f.group == operate.TopicFailure(joined)) {
			all = append(all, joined)
		}
		return err
	})
	return all, err
}

// listTopic prints the dead letters of a topic and their states in the store.
func listTopic(ctx context.Context, c *command.CLI, name string, f *filter, l *command.Listing) error {
	t, err := openTopic(ctx, c, name, f.store)
	if err != nil {
		return err
	}
	defer c.Close(t.assembly)
	all, err := t.letters(ctx, f, time.Now)
	if err != nil {
		return command.Failed(err)
	}
	shown := all
	if l.Limit > 0 {
		shown = all[:min(l.Limit, len(all))]
	}
	if c.JSON {
		return c.WriteJSON(map[string]any{"rows": append([]operate.TopicLetter{}, shown...), "count": len(all)})
	}
	if err := command.PrintTable(c, l, shown, topicColumns); err != nil {
		return err
	}
	fmt.Fprintln(c.Err, output.Counted(len(shown), len(all), "message"))
	if c.OutTerminal && len(all) > 0 {
		fmt.Fprintln(c.Err, c.Suggest("messages", "show", "PLACE", "--consumer", c.Consumer))
	}
	return nil
}

func topicColumns(all []operate.TopicLetter, wide bool) []output.Column[operate.TopicLetter] {
	type letter = operate.TopicLetter
	consumer := func(l letter) string { return l.Consumer }
	return []output.Column[letter]{
		output.Flexible("PLACE", func(l letter) string { return l.Place }),
		output.Text("STATE", func(l letter) string { return string(l.Stands) }),
		output.Text("ROW", func(l letter) string {
			if l.Row == 0 {
				return "-"
			}
			return fmt.Sprint(l.Row)
		}),
		output.Flexible("REASON", func(l letter) string { return string(l.Reason) }),
		output.Text("GROUP", operate.TopicFailure),
		output.Flexible("CONSUMER", consumer).If(wide).OrVaried(),
		output.Flexible("ID", func(l letter) string { return cmp.Or(l.ID, output.Base64Named(l.IDBase64)) }),
		output.Text("AGE", func(l letter) string { return output.Age(l.Written, time.Now()) }),
		output.Flexible("FROM", func(l letter) string { return l.From }).If(wide),
		output.Flexible("ERROR", func(l letter) string { return cmp.Or(l.Why, l.Error) }),
	}
}

// retryTopic retries dead letters of a topic. If a dead letter has a row, the row is retried. With --run,
// dead letters without a row are delivered to the consumer.
func retryTopic(ctx context.Context, c *command.CLI, r *retryFlags) error {
	t, err := openTopic(ctx, c, r.topic, r.store)
	if err != nil {
		return err
	}
	defer c.Close(t.assembly)
	return (&retry{CLI: c, assembly: t.assembly, box: t.joiner.Box, retryFlags: r, fromTopic: t}).retryAll(ctx)
}

// plan reads the topic again and predicts the result for each dead letter.
func (t *topicOf) plan(ctx context.Context, d *retry) (*operate.TopicPlan, error) {
	all, err := t.letters(ctx, &d.filter, time.Now)
	if err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(slices.Clone(all), operate.TopicLetter.OfAnother)
	if others := len(all) - len(mine); others > 0 && len(mine) == 0 {
		return nil, fmt.Errorf("topic %s has no dead letters of consumer %s, and %d of others, such as %s", t.name, t.consumer.Name, others, all[0].Consumer)
	} else if others > 0 && !t.remarkShown {
		t.remarkShown = true
		t.Remark("%s of other consumers and not retried", output.WithVerb(others, "message", "is", "are"))
	}
	doubt, err := t.doubt(ctx, d.retryFlags)
	if err != nil {
		return nil, err
	}
	return d.box.PlanTopic(ctx, mine, command.RefuseIfUnworked(ctx, d.assembly, d.assembly.Stores[0]), doubt)
}

// doubt returns a function that decides about dead letters without a row. The function returns why the
// message may have been applied before and must not be delivered again, or "" if the message may be
// delivered.
func (t *topicOf) doubt(ctx context.Context, r *retryFlags) (func(operate.TopicLetter) string, error) {
	kept, err := command.KeptSince(ctx, t.assembly.Stores[0], t.consumer.Name)
	if err != nil {
		return nil, err
	}
	positions, err := t.assembly.Positions(ctx, t.consumer)
	if err != nil {
		return nil, err
	}
	return func(l operate.TopicLetter) string {
		topic, partition, offset := l.Origin()
		at, known := positions[topic][partition]
		switch {
		case !r.inProcess:
			return "the store does not know it; --run delivers it to the consumer, with the policy's handler"
		case r.force:
			return ""
		case !kept.IsZero() && l.Sent().Before(kept):
			return "it is older than the markers that are kept, so it is unknown whether it took effect; --force processes it"
		case !known || at <= offset:
			return "the position in the store is before its record, so it is another store, or a restored backup; see semel consumers positions plan; --force processes it anyway"
		}
		return ""
	}, nil
}

// receive writes an audit record, and then delivers the dead letters that have no row to the consumer.
func (t *topicOf) receive(ctx context.Context, d *retry, p *operate.TopicPlan) error {
	n := p.Receives()
	if n == 0 {
		return nil
	}
	act := store.Act{Verb: string(admin.Retry), Who: d.who, Why: fmt.Sprintf("consumer %s, %s of topic %s: %s", t.consumer.Name, output.Counted(n, n, "message"), t.name, d.why)}
	if err := t.assembly.Stores[0].Record(ctx, act); err != nil {
		return err
	}
	return d.box.Receive(ctx, p, d.rate, func(ctx context.Context, src source.Source) error {
		if why, err := command.PausedWhy(ctx, t.assembly.Stores[0], t.consumer.Name); why != "" || err != nil {
			return cmp.Or(err, fmt.Errorf("%s: nothing is received until semel consumers resume resumes it", why))
		}
		reader, err := t.assembly.Reader(ctx, t.consumer.Name, src)
		if err != nil {
			return err
		}
		return reader.Run(ctx)
	})
}
