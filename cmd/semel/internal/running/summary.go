package running

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/semel-go/semel"
)

// Summary counts the outcomes of a run's deliveries, by consumer.
type Summary struct {
	Consumers map[string]semel.Counts `json:"consumers"`
	// Left lists the unfinished messages of runs that stopped because they were idle. Either the source could
	// not deliver an unfinished message, or only a newer release can process the message.
	Left map[string][]semel.Unfinished `json:"left,omitempty"`
	// ReadBefore has the consumers whose file has no new lines since the last run. The value in the map is the
	// length of the file.
	ReadBefore map[string]int64 `json:"-"`
}

// names returns the sorted names of the consumers.
func (s Summary) names() []string {
	var names []string
	for name := range s.Consumers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// line is a row of the printed table.
type line struct {
	name  string
	count func(semel.Counts) int64
}

// endingLines returns the lines of the possible outcomes of a delivery. The sum of the counts in these lines is the
// number of deliveries.
func endingLines() []line {
	return []line{
		{"applied", func(c semel.Counts) int64 { return c.Applied }},
		{"duplicates", func(c semel.Counts) int64 { return c.Duplicates }},
		{"conflicts", func(c semel.Counts) int64 { return c.Conflicts }},
		{"parked", func(c semel.Counts) int64 { return c.Parked }},
		{"dead_lettered", func(c semel.Counts) int64 { return c.DeadLettered }},
		{"discarded", func(c semel.Counts) int64 { return c.Discarded }},
		{"skipped", func(c semel.Counts) int64 { return c.Skipped }},
		{"received", func(c semel.Counts) int64 { return c.Received }},
		{"waiting", func(c semel.Counts) int64 { return c.Waiting }},
		{"failed", func(c semel.Counts) int64 { return c.Failed }},
		{"in_flight", func(c semel.Counts) int64 { return c.InFlight }},
	}
}

// furtherLines returns the lines of counts that are not outcomes of deliveries.
func furtherLines() []line {
	return []line{
		{"retried", func(c semel.Counts) int64 { return c.Retried }},
		{"rerun", func(c semel.Counts) int64 { return c.Rerun }},
	}
}

// attentionLines returns the lines of counts that need attention. A line is printed if its count is not zero.
func attentionLines() []line {
	return []line{
		{"same_content", func(c semel.Counts) int64 { return c.SameContent }},
		{"without_key", func(c semel.Counts) int64 { return c.WithoutKey }},
		{"re_emitted", func(c semel.Counts) int64 { return c.ReEmitted }},
		{"not_re_emitted", func(c semel.Counts) int64 { return c.NotReEmitted }},
	}
}

// fromInbox returns the lines of the outcomes of claimed rows. The sum of the counts in these lines is the number of
// claimed rows, except rows in progress.
func fromInbox() []line {
	return []line{
		{"inbox.applied", func(c semel.Counts) int64 { return c.Inbox.Applied }},
		{"inbox.duplicates", func(c semel.Counts) int64 { return c.Inbox.Duplicates }},
		{"inbox.waiting", func(c semel.Counts) int64 { return c.Inbox.Waiting }},
		{"inbox.parked", func(c semel.Counts) int64 { return c.Inbox.Parked }},
		{"inbox.dead_lettered", func(c semel.Counts) int64 { return c.Inbox.DeadLettered }},
		{"inbox.discarded", func(c semel.Counts) int64 { return c.Inbox.Discarded }},
		{inboxStepped, func(c semel.Counts) int64 { return c.Inbox.Stepped }},
		{"inbox.released", func(c semel.Counts) int64 { return c.Inbox.Released }},
		{"inbox.lost", func(c semel.Counts) int64 { return c.Inbox.Lost }},
	}
}

// inboxStepped is printed if a handler has steps.
const inboxStepped = "inbox.stepped"

// claimsLine returns the line with the number of claimed rows. Claims are not deliveries: a stored message is
// claimed later, by any process.
func claimsLine() line {
	return line{"inbox.claimed", func(c semel.Counts) int64 { return c.Inbox.Claimed }}
}

// reclaimedLine returns the line with the number of claims taken over from processes that may have
// died. The summary has the line about claims that were taken over only if their number is not zero.
func reclaimedLine() line {
	return line{"inbox.reclaimed", func(c semel.Counts) int64 { return c.Inbox.Reclaimed }}
}

// Write prints the summary as an addition, with one column per consumer. The outcomes are above a rule, and
// their sum, the number of deliveries, is below the rule. If rows of an inbox were claimed, Write prints a
// second addition for the claims.
func (s Summary) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	names := s.names()
	row := func(title string, cell func(name string) string) {
		fmt.Fprintf(table, "%s\t", title)
		for _, name := range names {
			fmt.Fprintf(table, "%s\t", cell(name))
		}
		fmt.Fprintln(table)
	}
	counts := func(lines []line) {
		for _, l := range lines {
			row(l.name, func(name string) string { return fmt.Sprint(l.count(s.Consumers[name])) })
		}
	}
	row("", func(name string) string { return name })
	counts(endingLines())
	row("", func(name string) string { return strings.Repeat("-", max(len(name), 8)) })
	counts([]line{{"deliveries", func(c semel.Counts) int64 { return c.Deliveries }}})
	counts(furtherLines())
	for _, l := range attentionLines() {
		if slices.ContainsFunc(names, func(name string) bool { return l.count(s.Consumers[name]) > 0 }) {
			counts([]line{l})
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return s.Consumers[name].Inbox.Claimed > 0 }) {
		row("", func(string) string { return "" })
		counts(slices.DeleteFunc(fromInbox(), func(l line) bool {
			return l.name == inboxStepped && !slices.ContainsFunc(names, func(name string) bool { return l.count(s.Consumers[name]) > 0 })
		}))
		row("", func(name string) string { return strings.Repeat("-", max(len(name), 8)) })
		counts([]line{claimsLine()})
		if slices.ContainsFunc(names, func(name string) bool { return reclaimedLine().count(s.Consumers[name]) > 0 }) {
			counts([]line{reclaimedLine()})
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(s.writeLeft(w), s.writeReadBefore(w))
}

// writeReadBefore explains why nothing was delivered from a file that has no new lines.
func (s Summary) writeReadBefore(w io.Writer) error {
	var err error
	for _, name := range s.names() {
		if at, ok := s.ReadBefore[name]; ok && s.Consumers[name].Deliveries == 0 {
			_, wrote := fmt.Fprintf(w, "%s: nothing new; its file was already read to its end (byte %d)\n", name, at)
			err = errors.Join(err, wrote)
		}
	}
	return err
}

// writeLeft prints the unfinished messages, one line per lane.
func (s Summary) writeLeft(w io.Writer) error {
	var err error
	for _, name := range s.names() {
		for _, l := range s.Left[name] {
			many := "some messages"
			if l.Messages >= 0 {
				many = fmt.Sprintf("%d messages", l.Messages)
			}
			_, wrote := fmt.Fprintf(w, "left: consumer %s, lane %s: %s: %s\n", name, l.Lane, many, l.Reason)
			err = errors.Join(err, wrote)
		}
	}
	return err
}
