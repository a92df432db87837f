package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
)

// confirm asks for confirmation in two cases: before a command changes all rows without a filter, and before
// a command discards rows whose calls may have taken effect. After the confirmation, the command changes
// only the counted rows.
func confirm(ctx context.Context, c *command.CLI, box operate.Box, o *operate.Order, f *filter) error {
	if f.skipConfirmation || o.DryRun || !f.unrestricted && o.Verb != admin.Discard {
		return nil
	}
	var numbers []int64
	var doubted []store.StoredRow
	counts := tally{}
	for r, err := range box.Rows(ctx, o.Filter) {
		if err != nil {
			return command.Failed(err)
		}
		if o.Group != "" && operate.Failure(r) != o.Group {
			continue
		}
		numbers = append(numbers, r.Number)
		counts.add(r.Key.Consumer, r.Reason)
		if r.UnknownOutcome() && admin.Discard.May(&r, false) == nil {
			doubted = append(doubted, r)
		}
	}
	if f.unrestricted && len(numbers) > 0 {
		if err := confirmAll(c, o.Verb.Recorded(), "message", counts.total(), counts.formatLines()); err != nil {
			return err
		}
		o.Filter, o.Counted = store.RowFilter{Numbers: numbers}, true
	}
	if o.Verb != admin.Discard || len(doubted) == 0 {
		return nil
	}
	return confirmDoubted(c, doubted)
}

// confirmDoubted asks for confirmation before the command discards rows whose calls may have taken effect.
func confirmDoubted(c *command.CLI, rows []store.StoredRow) error {
	first := rows[0]
	says := fmt.Sprintf("row %d: a call for it has an unknown outcome, and may have taken effect", first.Number)
	if first.State == store.StateInProgress {
		says = fmt.Sprintf("row %d: a call for it is in progress, and takes effect even if the row is discarded", first.Number)
	}
	if len(rows) > 1 {
		says += fmt.Sprintf("; the same holds for %d rows in all", len(rows))
	}
	if !c.Asks() {
		return command.UsageError("--yes is missing: %s; ask the other side, and record the outcome with semel messages resolve, or confirm with --yes", says)
	}
	fmt.Fprintln(c.Out, says)
	return c.Ask("discard it anyway?")
}

// confirmAll asks for confirmation before a command changes all rows. Without a terminal and without the flag
// --yes, confirmAll returns an error.
func confirmAll(c *command.CLI, verb, thing string, n int, lines []string) error {
	if !c.Asks() {
		return command.UsageError("--yes is missing: --all without a filter would %s %s (%s); choose some with a filter, look with --dry-run, or confirm with --yes",
			verb, output.Counted(n, n, thing), strings.Join(lines, "; "))
	}
	fmt.Fprintf(c.Out, "--all without a filter chooses %s:\n", output.Counted(n, n, thing))
	for _, line := range lines {
		fmt.Fprintln(c.Out, "  "+line)
	}
	return c.Ask(verb + " them all?")
}

// tally counts rows by consumer and reason.
type tally map[string]map[semel.Reason]int

func (t tally) add(consumer string, reason semel.Reason) {
	if t[consumer] == nil {
		t[consumer] = map[semel.Reason]int{}
	}
	t[consumer][reason]++
}

func (t tally) total() (n int) {
	for consumer := range t {
		n += t.count(consumer)
	}
	return n
}

// count returns the number of rows of a consumer.
func (t tally) count(consumer string) (n int) {
	for _, count := range t[consumer] {
		n += count
	}
	return n
}

// consumers returns the names of the consumers. The consumer with the most rows is first.
func (t tally) consumers() []string {
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.count(b), t.count(a)), cmp.Compare(a, b))
	})
}

// formatLines returns one line per consumer. The consumer with the most rows is first.
func (t tally) formatLines() (all []string) {
	for _, name := range t.consumers() {
		all = append(all, cmp.Or(legible.Printable(name), "no consumer")+": "+byReason(t[name]))
	}
	return all
}

// byReason lists the number of rows for each reason, largest number first. A waiting row can have no reason.
func byReason(counts map[semel.Reason]int) string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b semel.Reason) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", counts[r], cmp.Or(legible.Printable(string(r)), "no reason")))
	}
	return strings.Join(parts, ", ")
}
