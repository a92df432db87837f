package running

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/store"
)

// Aside counts the messages that running consumers park, dead-letter or discard, by reason. Aside implements
// semel.Observer. The zero value is ready for use.
type Aside struct {
	// Rowless reports whether a consumer's store has no rows, as with Redis. If Rowless is nil, all stores
	// have rows.
	Rowless func(consumer string) bool

	mutex  sync.Mutex
	counts map[group]int // guarded by mutex
}

// group is one line of the table.
type group struct {
	consumer string
	kind     semel.EventKind
	reason   semel.Reason
}

// countedEvents maps the counted events to their names in the summary.
var countedEvents = map[semel.EventKind]string{
	semel.EventParked:       "parked",
	semel.EventConflict:     "conflicts",
	semel.EventDeadLettered: "dead_lettered",
	semel.EventDiscarded:    "discarded",
}

// Observe implements semel.Observer.
func (a *Aside) Observe(e semel.Event) {
	if countedEvents[e.Kind] == "" {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.counts == nil {
		a.counts = map[group]int{}
	}
	g := group{e.Consumer, e.Kind, e.Reason}
	if _, known := a.counts[g]; !known && len(a.counts) >= mostGroups {
		g.reason = furtherReasons
	}
	a.counts[g] += e.Messages
}

// mostGroups limits the number of counted groups, and mostShown the number of printed groups, because
// handlers can use any text as a reason.
const (
	mostGroups     = 1000
	mostShown      = 20
	furtherReasons = "further reasons"
)

// longestCell is the maximum width of a reason in the table.
const longestCell = 40

// shortestCell is the width of a reason in the table on a narrow terminal.
const shortestCell = 8

// Write prints how many messages were parked, dead-lettered or discarded for each reason, most frequent
// reason first. Below the table, Write prints commands that list the messages. The function list returns the
// text of a command that lists messages. If no message was parked, dead-lettered or discarded, Write prints
// nothing. The table has at most the given number of columns. With terminal.Unlimited, only long reasons are
// cut.
func (a *Aside) Write(w io.Writer, columns int, list func(verb string, flags ...string) string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(a.counts) == 0 {
		return nil
	}
	groups := slices.SortedFunc(maps.Keys(a.counts), func(x, y group) int {
		return cmp.Or(cmp.Compare(a.counts[y], a.counts[x]), cmp.Compare(x.reason, y.reason), cmp.Compare(x.consumer, y.consumer), cmp.Compare(x.kind, y.kind))
	})
	fmt.Fprintln(w, "\nparked, dead-lettered or discarded in this run:")
	if err := a.table(w, columns, groups[:min(len(groups), mostShown)]); err != nil {
		return err
	}
	if more := len(groups) - mostShown; more > 0 {
		fmt.Fprintf(w, "        and %d more\n", more)
	}
	listed := slices.DeleteFunc(groups, func(g group) bool { return a.Rowless != nil && a.Rowless(g.consumer) })
	if len(listed) == 0 {
		_, err := fmt.Fprintln(w, "\ntheir store is Redis, which keeps no rows to list; the log names the messages")
		return err
	}
	_, err := fmt.Fprintf(w, "\nlist them by error, or one by one:\n  %s\n  %s\n", list("summary"), list("ls", example(listed).flags()...))
	return err
}

// table prints the groups. If the groups do not fit the width, table cuts the reasons.
func (a *Aside) table(w io.Writer, columns int, groups []group) error {
	reason := longestCell
	if columns != terminal.Unlimited {
		rest := 0
		for _, g := range groups {
			rest = max(rest, len(countedEvents[g.kind])+terminal.Columns(terminal.Cut(g.consumer, longestName)))
		}
		const between = len("123456  " + "   " + "   ")
		reason = min(reason, max(shortestCell, columns-between-rest))
	}
	var lines bytes.Buffer
	table := tabwriter.NewWriter(&lines, 0, 0, 3, ' ', 0)
	for _, g := range groups {
		text := terminal.Cut(cmp.Or(terminal.Line(string(g.reason)), "-"), reason)
		fmt.Fprintf(table, "%6d  %s\t%s\t%s\n", a.counts[g], text, countedEvents[g.kind], terminal.Cut(g.consumer, longestName))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(lines.String()) {
		if _, err := fmt.Fprintln(w, terminal.Cut(strings.TrimRight(line, "\n"), columns)); err != nil {
			return err
		}
	}
	return nil
}

// example returns the first group whose messages need a person, or else the first group.
func example(groups []group) group {
	for _, g := range groups {
		if (g.kind == semel.EventParked || g.kind == semel.EventConflict) && g.reason != furtherReasons {
			return g
		}
	}
	return groups[0]
}

// flags returns the flags that choose the rows of the group.
func (g group) flags() []string {
	flags := []string{"--reason", string(g.reason)}
	switch g.kind {
	case semel.EventDeadLettered:
		flags = append(flags, "--state", string(store.StateDeadLettered))
	case semel.EventDiscarded:
		flags = append(flags, "--state", string(store.StateDiscarded))
	}
	return flags
}
