package messages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// deadShow shows a row by its number, or a letter of a topic by its place.
func deadShow(c *command.CLI) *cobra.Command {
	cmd := rowShow(c)
	cmd.Use = "show NUMBER|GROUP|TOPIC/PARTITION/OFFSET"
	cmd.Short = "Show one letter, its edits and acts, or one failure group"
	rows := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, _ := cmd.Flags().GetString("store")
		if failureGroup.MatchString(args[0]) {
			if shown, err := showGroup(cmd.Context(), c, args[0], store); shown || err != nil {
				return err
			}
		}
		if !strings.Contains(args[0], "/") {
			return rows(cmd, args)
		}
		at, err := parsePlace(args[0])
		if err != nil {
			return err
		}
		payload, _ := cmd.Flags().GetBool("payload")
		return showLetter(cmd.Context(), c, at, store, payload)
	}
	return c.WithConsumer(cmd, "whose letter it is, of a topic")
}

// failureGroup is the name of a failure group, as ls prints it.
var failureGroup = regexp.MustCompile(`^[0-9a-f]{8}$`)

// lettersShown is how many letters of a failure group are shown.
const lettersShown = 20

// showGroup shows a failure group with its first letters; false if the name may be a row's
// number and is none of a group.
func showGroup(ctx context.Context, c *command.CLI, name, st string) (bool, error) {
	a, err := c.OpenBoxes(ctx, st)
	if err != nil {
		return false, err
	}
	defer c.Close(a)
	chosen := store.RowFilter{Consumer: c.Consumer, States: aside()}
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
		return false, command.Failed(fmt.Errorf("no letter is of a failure group %s; semel dead ls shows the groups", name))
	}
	if !c.JSON {
		if err := command.PrintTable(c, &command.Listing{}, groups, groupColumns); err != nil {
			return true, err
		}
		fmt.Fprintln(c.Out)
	}
	if err := listLetters(ctx, c, a, chosen, name, &command.Listing{Limit: map[bool]int{false: lettersShown}[c.JSON]}); err != nil {
		return true, err
	}
	c.Remark("%s", command.Shell("semel", "dead", "replay", "--config", c.Config, "--all", "--group", name, "--dry-run"))
	return true, nil
}

// letterPlace is where a letter of a topic stands.
type letterPlace struct {
	topic     string
	partition int32
	offset    int64
}

func parsePlace(text string) (letterPlace, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 && parts[0] != "" {
		partition, noPartition := strconv.ParseInt(parts[1], 10, 32)
		offset, noOffset := strconv.ParseInt(parts[2], 10, 64)
		if noPartition == nil && noOffset == nil && partition >= 0 && offset >= 0 {
			return letterPlace{parts[0], int32(partition), offset}, nil
		}
	}
	return letterPlace{}, command.UsageError("%q is no row number, and no place as TOPIC/PARTITION/OFFSET; semel dead ls shows them", text)
}

// errFound ends the reading of a topic.
var errFound = errors.New("the letter is found")

// showLetter shows one letter of a topic, joined with the store.
func showLetter(ctx context.Context, c *command.CLI, at letterPlace, store string, payload bool) error {
	t, err := openTopic(ctx, c, at.topic, store)
	if err != nil {
		return err
	}
	defer c.Close(t.assembly)
	var d operate.TopicDetail
	err = t.assembly.Letters(ctx, t.of, t.name, func(l kafka.Letter) error {
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
		return command.Failed(fmt.Errorf("topic %s has no letter at partition %d, offset %d; semel dead ls --topic shows what there is", at.topic, at.partition, at.offset))
	case !errors.Is(err, errFound):
		return command.Failed(err)
	case c.JSON:
		return c.WriteJSON(d)
	}
	return command.Failed(writeLetter(c.Out, d))
}

func writeLetter(w io.Writer, d operate.TopicDetail) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := ""
	if d.Row > 0 {
		row = fmt.Sprintf("%d; semel dead show %d has its history", d.Row, d.Row)
	}
	for _, field := range []struct{ name, value string }{
		{"letter", d.Place}, {"stands", string(d.Stands)}, {"why", d.Why}, {"row", row}, {"reason", string(d.Reason)}, {"consumer", d.Consumer},
		{"source", d.Source}, {"id", d.ID + output.Base64Named(d.IDBase64)}, {"type", d.Type}, {"attempts", fmt.Sprint(d.Attempts)}, {"last error", d.Error},
		{"from", d.From}, {"written", output.Moment(d.Written)}, {"payload", fmt.Sprintf("%d bytes", d.Size)},
	} {
		if field.value != "" {
			fmt.Fprintf(table, "%s\t%s\n", field.name, legible.Printable(field.value))
		}
	}
	for _, h := range d.Headers {
		fmt.Fprintf(table, "header\t%s: %s\n", legible.Printable(h.Name), legible.Printable(h.Value+h.ValueBase64))
	}
	if err := table.Flush(); err != nil || d.Payload == nil && d.PayloadBase64 == "" {
		return err
	}
	payload := d.PayloadBase64
	if d.Payload != nil {
		payload = legible.Printable(*d.Payload)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", payload)
	return err
}
