package messages

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// showCommand returns the command that shows one message or intent, one failure group, or one dead letter of
// a topic. The user gives the row number, the group's name, or the position in the topic.
func showCommand(c *command.CLI, of subject) *cobra.Command {
	var store string
	var payload bool
	use, short := "show NUMBER|GROUP|TOPIC/PARTITION/OFFSET", "Show one message with its history, or one failure group"
	if of.intents {
		use, short = "show NUMBER", "Show one intent with its history"
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("give one row number; ls shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !of.intents && failureGroup.MatchString(args[0]) {
				if shown, err := showGroup(cmd.Context(), c, args[0], store); shown || err != nil {
					return err
				}
			}
			if !of.intents && strings.Contains(args[0], "/") {
				at, err := parsePlace(args[0])
				if err != nil {
					return err
				}
				return showTopic(cmd.Context(), c, at, store, payload)
			}
			numbers, err := parseNumbers(args)
			if err != nil {
				return err
			}
			return showRow(cmd.Context(), c, of, numbers[0], store, payload)
		},
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "also show headers and payload (may have secrets)")
	cmd.Flags().StringVar(&store, "store", "", "a store of the policy, postgres://… or sqlite:FILE")
	if !of.intents {
		c.WithConsumer(cmd, "the consumer of the topic, or of the failure group")
	}
	return c.WithConfig(cmd)
}

func showRow(ctx context.Context, c *command.CLI, of subject, number int64, st string, payload bool) error {
	a, err := c.OpenBox(ctx, st)
	if err != nil {
		return err
	}
	defer c.Close(a)
	box := command.BoxOf(a.Stores[0])
	box.CallKey = a.CallKey
	detail, err := box.Show(ctx, number, payload)
	if err != nil {
		return command.Failed(err)
	}
	if of.intents {
		detail.Recipient = detail.KeyName()
	}
	if c.JSON {
		return c.WriteJSON(detail)
	}
	if err := writeDetail(c, c.Out, detail); err != nil {
		return command.Failed(err)
	}
	legal, err := box.Legal(ctx, number, of.commands(), command.RefuseIfUnworked(ctx, a, a.Stores[0]))
	if err != nil {
		c.Remark("the commands that are possible now are not known: %v", err)
	}
	here := detail.Due != nil && !detail.Due.After(time.Now()) && len(a.Policy().Consumers) > 0
	return command.Failed(of.writeCommands(c, a.Stores[0].Name(), number, legal, here))
}

// commands returns the commands that change one row, in the order in which semel messages show lists the
// commands.
func (of subject) commands() []admin.Verb {
	if of.intents {
		return []admin.Verb{admin.Send, admin.Resolve, admin.Suppress, admin.Release, admin.Discard}
	}
	return []admin.Verb{admin.Retry, admin.Resolve, admin.Edit, admin.Release, admin.Skip, admin.Discard, admin.Reopen}
}

// writeCommands prints the commands that may change a row of a store. The parameter here means that the row is due, so
// that only a retry with --run is of use.
func (of subject) writeCommands(c *command.CLI, st string, number int64, legal []admin.Verb, here bool) error {
	for i, verb := range legal {
		if i == 0 {
			fmt.Fprint(c.Out, "\ncommands that are possible now:\n")
		}
		words := []string{of.word + "s", verb.Recorded(), fmt.Sprint(number)}
		switch verb {
		case admin.Resolve:
			words = append(words, "--outcome", of.doneOutcome())
		case admin.Edit:
			words = append(words, "--payload", "FILE")
		case admin.Retry, admin.Send:
			if here {
				words = append(words, "--run")
			}
		}
		words = append(words, "--because", "WHY")
		if _, err := fmt.Fprintln(c.Out, "  "+terminal.Line(c.SuggestIn(st, words...))); err != nil {
			return err
		}
	}
	return nil
}

// failureGroup matches names of failure groups, which `semel messages summary` prints.
var failureGroup = regexp.MustCompile(`^[0-9a-f]{8}$`)

// rowsShown is the number of printed messages of a failure group.
const rowsShown = 20

// showGroup prints a failure group and its first messages. showGroup returns false if no group has this name
// and the name could also be a row number.
func showGroup(ctx context.Context, c *command.CLI, name, st string) (bool, error) {
	a, err := c.OpenBoxes(ctx, st)
	if err != nil {
		return false, err
	}
	defer c.Close(a)
	chosen := store.RowFilter{States: append(admin.Parked.Stored(), admin.Dead.Stored()...)}
	if chosen.Consumer, err = c.ActiveName(ctx, a, c.Consumer); err != nil {
		return false, err
	}
	var groups []operate.Group
	for _, s := range a.Stores {
		all, err := command.BoxOf(s).Failures(ctx, chosen)
		if err != nil {
			return false, command.Failed(err)
		}
		for _, g := range all {
			if g.ID == name {
				groups = append(groups, g)
			}
		}
	}
	if len(groups) == 0 {
		if strings.Trim(name, "0123456789") == "" {
			return false, nil
		}
		return false, command.Failed(fmt.Errorf("no message is of failure group %s; semel messages summary shows the groups", name))
	}
	if !c.JSON {
		if err := command.PrintTable(c, &command.Listing{}, groups, groupColumns); err != nil {
			return true, err
		}
		fmt.Fprintln(c.Out)
	}
	if err := list(ctx, c, a, chosen, name, &command.Listing{Limit: map[bool]int{false: rowsShown}[c.JSON]}, subject{word: "message"}); err != nil {
		return true, err
	}
	c.Remark("%s", c.Suggest("messages", "retry", "--all", "--group", name, "--dry-run"))
	return true, nil
}

// topicPlace is the position of a dead letter: topic, partition and offset.
type topicPlace struct {
	topic     string
	partition int32
	offset    int64
}

func parsePlace(text string) (topicPlace, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 && parts[0] != "" {
		partition, noPartition := strconv.ParseInt(parts[1], 10, 32)
		offset, noOffset := strconv.ParseInt(parts[2], 10, 64)
		if noPartition == nil && noOffset == nil && partition >= 0 && offset >= 0 {
			return topicPlace{parts[0], int32(partition), offset}, nil
		}
	}
	return topicPlace{}, command.UsageError("%q is no row number, and no place as TOPIC/PARTITION/OFFSET; semel messages ls shows them", text)
}

// errFound stops reading a topic when the wanted record was found.
var errFound = errors.New("the record is found")

// showTopic prints one dead letter of a topic, together with its state in the store.
func showTopic(ctx context.Context, c *command.CLI, at topicPlace, store string, payload bool) error {
	t, err := openTopic(ctx, c, at.topic, store)
	if err != nil {
		return err
	}
	defer c.Close(t.assembly)
	var d operate.TopicDetail
	err = t.assembly.Letters(ctx, t.consumer, t.name, func(l kafka.Letter) error {
		if l.Partition != at.partition || l.Offset != at.offset {
			return nil
		}
		joined, err := t.joiner.Join(ctx, l)
		if err != nil {
			return err
		}
		d = operate.NewTopicDetail(joined, l, payload)
		return errFound
	})
	switch {
	case err == nil:
		return command.Failed(fmt.Errorf("topic %s has no dead letter at partition %d, offset %d; semel messages ls --topic shows what there is", at.topic, at.partition, at.offset))
	case !errors.Is(err, errFound):
		return command.Failed(err)
	case c.JSON:
		return c.WriteJSON(d)
	}
	return command.Failed(writeTopicDetail(c, d))
}

func writeTopicDetail(c *command.CLI, d operate.TopicDetail) error {
	row := ""
	if d.Row > 0 {
		row = fmt.Sprintf("%d; its history: %s", d.Row, c.Suggest("messages", "show", fmt.Sprint(d.Row)))
	}
	fields := []detailField{
		{"place", d.Place}, {"state", string(d.Stands)}, {"why", d.Why}, {"row", row}, {"reason", string(d.Reason)}, {"consumer", d.Consumer},
		{"source", d.Source}, {"id", d.ID + output.Base64Named(d.IDBase64)}, {"type", d.Type}, {"attempts", fmt.Sprint(d.Attempts)}, {"last error", d.Error},
		{"from", d.From}, {"written", output.Moment(d.Written)}, {"payload", fmt.Sprintf("%d bytes", d.Size)},
	}
	fields = slices.DeleteFunc(fields, func(f detailField) bool { return f.Value == "" })
	for i := range fields {
		fields[i].Value = legible.Printable(fields[i].Value)
	}
	for _, h := range d.Headers {
		fields = append(fields, detailField{"header", legible.Printable(h.Name) + ": " + legible.Printable(h.Value+h.ValueBase64)})
	}
	if err := writeFields(c, c.Out, fields); err != nil || d.Payload == nil && d.PayloadBase64 == "" {
		return err
	}
	payload := d.PayloadBase64
	if d.Payload != nil {
		payload = legible.Printable(*d.Payload)
	}
	_, err := fmt.Fprintf(c.Out, "\n%s\n", payload)
	return err
}
