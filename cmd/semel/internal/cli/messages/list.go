package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// listCommand returns the command that lists messages or intents. Without --state, the command lists
// messages that need a person.
func listCommand(c *command.CLI, of subject) *cobra.Command {
	f, l, topic := &filter{}, &command.Listing{}, ""
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List " + of.word + "s",
		Long:  "List " + of.word + "s. The states are " + strings.Join(f.possibleStates()[:4], ", ") + ",\n" + strings.Join(f.possibleStates()[4:], ", ") + ".",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topic != "" {
				if err := l.Check(c, cmd); err != nil {
					return err
				}
				return listTopic(cmd.Context(), c, topic, f, l)
			}
			return openAndShow(c, cmd, f, l, func(ctx context.Context, a *assembly.Assembly, chosen store.RowFilter) error {
				return list(ctx, c, a, chosen, f.group, l, of)
			})
		},
	}
	l.Add(c, cmd, 0, of.word+"s")
	if !of.intents {
		topicFlag(cmd, &topic)
	}
	return f.add(c, cmd, of.standard("")...)
}

// openAndShow opens the chosen stores and calls the function show.
func openAndShow(c *command.CLI, cmd *cobra.Command, f *filter, l *command.Listing, show func(context.Context, *assembly.Assembly, store.RowFilter) error) error {
	if err := l.Check(c, cmd); err != nil {
		return err
	}
	chosen, err := f.rowFilter(c, time.Now)
	if err != nil {
		return err
	}
	a, err := c.OpenBoxes(cmd.Context(), f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if chosen.Consumer, err = c.ActiveName(cmd.Context(), a, chosen.Consumer); err != nil {
		return err
	}
	return show(cmd.Context(), a, chosen)
}

// list prints the chosen rows to standard output and their number to standard error.
func list(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, group string, l *command.Listing, of subject) error {
	consumers := []string{f.Consumer}
	if of.intents && f.Consumer == "" {
		if consumers = sendersOf(a.Policy()); len(consumers) == 0 {
			return command.UsageError("--consumer is missing: name the sender of the intents; the policy has none, because each of its consumers has a source")
		}
	}
	views, count := []operate.View{}, 0
	for _, s := range a.Stores {
		box := command.BoxOf(s)
		for _, f.Consumer = range consumers {
			for row, err := range box.Rows(ctx, f) {
				if err != nil {
					return command.Failed(err)
				}
				if group != "" && operate.Failure(row) != group {
					continue
				}
				if count++; !l.Full(len(views)) {
					views = append(views, of.view(box.Store, row))
				}
			}
		}
	}
	columns := rowColumns(severalStates(f.States))
	if of.intents {
		columns = intentColumns
	}
	err := command.PrintList(c, l, "rows", of.word, views, count, columns)
	switch {
	case err != nil || c.JSON:
		return err
	case count == 0:
		return pointAtReasons(ctx, c, a, f)
	case c.OutTerminal:
		fmt.Fprintln(c.Err, c.SuggestIn(listedStore(a), of.word+"s", "show", "NUMBER"))
	}
	return nil
}

// severalStates reports whether messages in several states were asked for. severalStates returns false for
// the states that are chosen without --state.
func severalStates(stored []store.RowState) bool {
	states, others := map[admin.State]bool{}, false
	for _, s := range stored {
		state := admin.StateOf(s)
		states[state] = true
		others = others || !slices.Contains(attention(), state)
	}
	return len(stored) == 0 || len(states) > 1 && others
}

// listedStore returns the value of --store in a command that is suggested for a listed row: the name of the
// only store, or the word STORE, which stands for a value of the column STORE.
func listedStore(a *assembly.Assembly) string {
	if len(a.Stores) > 1 {
		return "STORE"
	}
	return a.Stores[0].Name()
}

// view returns what the commands show of a row. The view of an intent has the recipient, which the store keeps
// as the row's key.
func (of subject) view(st string, row store.StoredRow) operate.View {
	v := operate.NewView(st, row)
	if of.intents {
		v.Recipient = v.KeyName()
	}
	return v
}

// rowColumns returns the columns of the table of messages. With limited width, rowColumns leaves out columns
// whose cells are all equal, and columns that few users need. If the parameter states is true, the column
// STATE is always shown.
func rowColumns(states bool) func(views []operate.View, wide bool) []output.Column[operate.View] {
	return func(views []operate.View, wide bool) []output.Column[operate.View] {
		return columnsOf(views, wide, states)
	}
}

func columnsOf(views []operate.View, wide, states bool) []output.Column[operate.View] {
	versioned := slices.ContainsFunc(views, func(v operate.View) bool { return v.Version > 0 })
	failed := slices.ContainsFunc(views, func(v operate.View) bool { return reasonOf(v) != "" || lastErrorOf(v) != "" })
	return []output.Column[operate.View]{
		output.Number("NUMBER", func(v operate.View) int64 { return v.Number }),
		output.Text("STORE", storeOf).IfVaried(),
		output.Text("STATE", stateOf).If(wide || states).OrVaried(),
		output.Flexible("REASON", reasonOf).If(wide || failed),
		output.Flexible("CONSUMER", consumerOf).If(wide).OrVaried(),
		output.Flexible("ID", IDOf),
		output.Flexible("STREAM", operate.View.StreamName).If(versioned),
		output.Text("VERSION", versionOf).If(versioned),
		output.Flexible("KEY", keyOf).If(slices.ContainsFunc(views, func(v operate.View) bool { return v.Lined && v.KeyName() != "" })),
		output.Number("ATTEMPTS", func(v operate.View) int { return v.Attempts }).If(wide),
		output.Number("REPEATED", func(v operate.View) int { return v.Repeated }).If(wide),
		output.Text("DUE", dueOf).If(slices.ContainsFunc(views, func(v operate.View) bool { return v.Due != nil || v.Claimed != nil })),
		output.Text("AGE", ageOf),
		output.Flexible("LAST ERROR", lastErrorOf).If(wide || failed),
	}
}

// intentColumns returns the columns of the table of intents. With limited width, intentColumns leaves out
// columns whose cells are all equal. If the recipients differ, intentColumns also leaves out the id.
func intentColumns(views []operate.View, wide bool) []output.Column[operate.View] {
	kind := func(v operate.View) string { return v.Type }
	purpose := func(v operate.View) string { return v.Subject }
	recipient := func(v operate.View) string { return v.Recipient }
	some := func(text func(operate.View) string) bool {
		return slices.ContainsFunc(views, func(v operate.View) bool { return text(v) != "" })
	}
	recipients := some(recipient)
	return []output.Column[operate.View]{
		output.Number("NUMBER", func(v operate.View) int64 { return v.Number }),
		output.Text("STORE", storeOf).IfVaried(),
		output.Text("STATE", stateOf),
		output.Flexible("REASON", reasonOf),
		output.Flexible("SENDER", consumerOf).If(wide).OrVaried(),
		output.Flexible("WRITTEN BY", func(v operate.View) string { return v.Source }).If(wide).OrVaried(),
		output.Flexible("TYPE", kind).If(wide && some(kind)).OrVaried(),
		output.Flexible("PURPOSE", purpose).If(wide && some(purpose)).OrVaried(),
		output.Flexible("RECIPIENT", recipient).If(recipients),
		output.Flexible("ID", IDOf).If(wide || !recipients),
		output.Text("AGE", ageOf),
		output.Flexible("LAST ERROR", lastErrorOf),
	}
}

// reasonOf returns why a message waits, was parked or has ended. An applied message keeps the reason of an
// earlier failure, so reasonOf ignores this reason.
func reasonOf(v operate.View) string {
	if v.State == admin.Applied && v.Reason != reasonname.Erased {
		return ""
	}
	return string(v.Reason)
}

// lastErrorOf returns the last error of a message that was not applied, without its reason.
func lastErrorOf(v operate.View) string {
	if v.State == admin.Applied {
		return ""
	}
	return operate.WithoutReason(v.Reason, v.Last)
}

// ageOf returns the time since the message was received.
func ageOf(v operate.View) string { return output.Age(v.Received, time.Now()) }

// dueOf returns the time until the message is due. For a claimed message, dueOf returns the time until the
// claim expires.
func dueOf(v operate.View) string {
	switch {
	case v.Claimed != nil:
		return "claimed for " + output.Age(time.Now(), *v.Claimed)
	case v.Due == nil:
		return "-"
	case v.Due.After(time.Now()):
		return "in " + output.Age(time.Now(), *v.Due)
	}
	return "now"
}

func storeOf(v operate.View) string { return v.Store }

func stateOf(v operate.View) string { return string(v.State) }

func consumerOf(v operate.View) string { return v.Consumer }

// pointAtReasons prints the existing reasons if no row has the reason in the filter. If no row has any
// reason, and the reason in the filter is unknown to Semel, pointAtReasons prints the reasons that Semel
// uses.
func pointAtReasons(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter) error {
	if f.Reason == "" {
		return nil
	}
	asked, counts := f.Reason, map[semel.Reason]int{}
	f.Reason = ""
	for _, s := range a.Stores {
		groups, err := command.BoxOf(s).Failures(ctx, f)
		if err != nil {
			return command.Failed(err)
		}
		for _, g := range groups {
			counts[g.Reason] += g.Count
		}
	}
	switch {
	case len(counts) > 0:
		c.Remark("--reason %q: no row has this reason; there are %s", asked, byReason(counts))
	case !slices.Contains(reasons(), string(asked)):
		c.Remark("--reason %q: no row has this reason; the reasons are %s, and those that your handlers give", asked, strings.Join(reasons(), ", "))
	}
	return nil
}
