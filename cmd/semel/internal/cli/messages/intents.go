package messages

import (
	"context"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// unsent are the states of an intent that is not sent and may be.
func unsent() []store.RowState {
	return []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateParked}
}

// intentsCommand shows and moves what senders send. An intent is a row of its sender's
// inbox, and so are its acts.
func intentsCommand(c *command.CLI) *cobra.Command {
	acts := []*cobra.Command{
		rowAct(c, admin.Send, store.StateParked, store.StateFailedRetryable),
		rowResolve(c, "sent"),
		rowAct(c, admin.Suppress, store.StateReceived, store.StateFailedRetryable),
	}
	for _, act := range acts {
		ofOneSender(c, act)
	}
	all := command.Group("intents", "Show and repair intents", append([]*cobra.Command{intentList(c), intentShow(c)}, acts...)...)
	all.Long = "Show and repair intents.\n\nAn intent is a row of its sender's inbox: semel inbox release ends the claim of\na process that stands still, and semel inbox discard closes one for good."
	return all
}

// ofOneSender has --all of an act choose the intents of one sender: that of --consumer, or
// the only one of the policy.
func ofOneSender(c *command.CLI, act *cobra.Command) {
	run := act.RunE
	act.RunE = func(cmd *cobra.Command, args []string) error {
		if all, err := cmd.Flags().GetBool("all"); err != nil || !all || c.Consumer != "" {
			return run(cmd, args)
		}
		store, err := cmd.Flags().GetString("store")
		if err != nil {
			return err
		}
		p, _, err := c.LoadFor(store)
		if err != nil {
			return err
		}
		senders := sendersOf(p)
		if len(senders) != 1 {
			return command.UsageError("--consumer is missing: name the sender whose intents are meant%s", listed(senders))
		}
		c.Consumer = senders[0]
		return run(cmd, args)
	}
}

// listed are names in brackets; empty for none.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// sendersOf are the consumers of a policy that send intents.
func sendersOf(p *policy.Policy) (names []string) {
	for _, consumer := range p.Consumers {
		if consumer.Sends() {
			names = append(names, consumer.Name)
		}
	}
	return names
}

// intentShow shows an intent with its recipient, which is the key of its row.
func intentShow(c *command.CLI) *cobra.Command {
	return showCommand(c, "Show one intent and what was done to it", func(d *operate.Detail) { d.Recipient = d.KeyName() })
}

func intentList(c *command.CLI) *cobra.Command {
	f, l := &filter{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List unsent intents",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return look(c, cmd, f, l, listIntents)
		},
	}
	l.Add(c, cmd, 0, "intents")
	return c.WithConfig(f.add(c, cmd, unsent()...))
}

// listIntents prints the intents of the senders, and on stderr how many there are.
func listIntents(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, l *command.Listing) error {
	if err := c.RefuseUnknownConsumer(ctx, a, f.Consumer); err != nil {
		return err
	}
	senders := []string{f.Consumer}
	if f.Consumer == "" {
		if senders = sendersOf(a.Policy()); len(senders) == 0 {
			return command.UsageError("--consumer is missing: name the sender whose intents are meant; the policy has none, as none of its consumers is without from")
		}
	}
	views, count := []intentView{}, 0
	for _, s := range a.Stores {
		for _, name := range senders {
			f.Consumer = name
			for row, err := range command.BoxOf(s).Rows(ctx, f) {
				if err != nil {
					return command.Failed(err)
				}
				if count++; !l.Full(len(views)) {
					views = append(views, newIntentView(s.Name(), row))
				}
			}
		}
	}
	return command.PrintList(c, l, "rows", "intent", views, count, intentColumns)
}

// intentView is the row of an intent, with its recipient under its own name, as show has it.
type intentView struct {
	operate.View
	Recipient string `json:"recipient,omitempty"`
}

func newIntentView(st string, row store.StoredRow) intentView {
	v := operate.NewView(st, row)
	return intentView{v, v.KeyName()}
}

// intentColumns are those of the list of intents. What all have in common, and an id where
// recipients tell them apart, is left out where the width is limited.
func intentColumns(views []intentView, wide bool) []output.Column[intentView] {
	source := func(v intentView) string { return v.Source }
	kind := func(v intentView) string { return v.Type }
	purpose := func(v intentView) string { return v.Subject }
	recipient := func(v intentView) string { return v.Recipient }
	sender := func(v intentView) string { return v.Consumer }
	store := func(v intentView) string { return v.Store }
	some := func(text func(intentView) string) bool {
		return slices.ContainsFunc(views, func(v intentView) bool { return text(v) != "" })
	}
	recipients := some(recipient)
	return []output.Column[intentView]{
		output.Number("NUMBER", func(v intentView) int64 { return v.Number }),
		output.Text("STORE", store).IfVaried(),
		output.Text("STATE", func(v intentView) string { return string(v.State) }),
		output.Flexible("REASON", func(v intentView) string { return string(v.Reason) }),
		output.Flexible("SENDER", sender).If(wide).OrVaried(),
		output.Flexible("WRITTEN BY", source).If(wide).OrVaried(),
		output.Flexible("TYPE", kind).If(wide && some(kind)).OrVaried(),
		output.Flexible("PURPOSE", purpose).If(wide && some(purpose)).OrVaried(),
		output.Flexible("RECIPIENT", recipient).If(recipients),
		output.Flexible("ID", func(v intentView) string { return IDOf(v.View) }).If(wide || !recipients),
		output.Text("WRITTEN", func(v intentView) string { return received(v.View, wide) }),
		output.Flexible("LAST ERROR", func(v intentView) string { return beyond(v.Reason, v.Last) }),
	}
}
