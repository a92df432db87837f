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

// Summary is what became of the deliveries of a run, by consumer.
type Summary struct {
	Consumers map[string]semel.Counts `json:"consumers"`
	// Left is what runs that ended idle left: what sources had and could not
	// deliver, and what a newer release has to end.
	Left map[string][]semel.Left `json:"left,omitempty"`
	// ReadBefore are the consumers whose file had been read to its end, this
	// byte, before the run, and has not grown.
	ReadBefore map[string]int64 `json:"-"`
}

// names returns the consumers, sorted.
func (s Summary) names() []string {
	var names []string
	for name := range s.Consumers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// line is a row of the table.
type line struct {
	name  string
	count func(semel.Counts) int64
}

// endings are the ways in which a delivery ends; their sum is the deliveries.
func endings() []line {
	return []line{
		{"applied", func(c semel.Counts) int64 { return c.Applied }},
		{"duplicates", func(c semel.Counts) int64 { return c.Duplicates }},
		{"conflicts", func(c semel.Counts) int64 { return c.Conflicts }},
		{"parked", func(c semel.Counts) int64 { return c.Parked }},
		{"dead_lettered", func(c semel.Counts) int64 { return c.DeadLettered }},
		{"discarded", func(c semel.Counts) int64 { return c.Discarded }},
		{"skipped", func(c semel.Counts) int64 { return c.Skipped }},
		{"failed", func(c semel.Counts) int64 { return c.Failed }},
		{"in_flight", func(c semel.Counts) int64 { return c.InFlight }},
	}
}

// besides are counts that stand beside the sum.
func besides() []line {
	return []line{
		{"retried", func(c semel.Counts) int64 { return c.Retried }},
		{"rerun", func(c semel.Counts) int64 { return c.Rerun }},
	}
}

// Write prints the summary as a sum: one column a consumer, the endings above
// the line, the deliveries below it.
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
	counts(endings())
	row("", func(name string) string { return strings.Repeat("-", max(len(name), 8)) })
	counts([]line{{"deliveries", func(c semel.Counts) int64 { return c.Deliveries }}})
	counts(besides())
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(s.writeLeft(w), s.writeReadBefore(w))
}

// writeReadBefore says why nothing was delivered where a file had been read.
func (s Summary) writeReadBefore(w io.Writer) error {
	var err error
	for _, name := range s.names() {
		if at, ok := s.ReadBefore[name]; ok && s.Consumers[name].Deliveries == 0 {
			_, wrote := fmt.Fprintf(w, "%s: nothing new, its file was read to its end (byte %d) before\n", name, at)
			err = errors.Join(err, wrote)
		}
	}
	return err
}

// writeLeft prints what is left, one line a lane.
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
