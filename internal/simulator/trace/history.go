package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// History is the history of a run as text.
type History struct{ Text strings.Builder }

// Line writes a line.
func (h *History) Line(now time.Duration, format string, args ...any) {
	fmt.Fprintf(&h.Text, "%12.3fms ", float64(now)/float64(time.Millisecond))
	fmt.Fprintf(&h.Text, format, args...)
	h.Text.WriteByte('\n')
}

// Step writes an event and the resulting actions of the machine. The parameter whose is a prefix that names the
// process, or empty if there is only one process.
func (h *History) Step(now time.Duration, whose string, e machine.Event, actions []machine.Action) {
	h.Line(now, "%s%s", whose, showEvent(e))
	for _, a := range actions {
		fmt.Fprintf(&h.Text, "%18s-> %s\n", "", Action(a))
	}
}

// Lane returns the name of a lane in histories.
func Lane(l source.Lane) string { return fmt.Sprintf("%s/%d", l.ID, l.Epoch) }

// Item returns the name of an item in histories.
func Item(i *machine.Item) string {
	if i == nil {
		return "nobody"
	}
	return fmt.Sprint(i.Handle)
}

func showEvent(e machine.Event) string {
	switch e := e.(type) {
	case machine.Given:
		return "Given " + Lane(e.Lane)
	case machine.Revoking:
		return "Revoking " + Lane(e.Lane)
	case machine.Lost:
		return "Lost " + Lane(e.Lane)
	case machine.Fetched:
		return showFetched(e)
	case machine.Claimed:
		return showClaimed(e)
	case machine.Due:
		return "Due"
	case machine.Marked:
		return showMarked(e)
	case machine.Ran:
		text := fmt.Sprintf("Ran f%d: %d done", e.Flight.Number, e.Done)
		if e.Failed {
			text += fmt.Sprintf(", failed: %s, %s, after %v", e.Class.String(), Word(decisionNames[:], e.Decision), e.After)
		}
		return text
	case machine.Stuck:
		return fmt.Sprintf("Stuck f%d", e.Flight.Number)
	case machine.Ended:
		return fmt.Sprintf("Ended f%d: %s, %s, culprit %d%s", e.Flight.Number, e.Outcome.String(), e.Class.String(), e.Culprit, map[bool]string{true: ", rows freed"}[e.Freed])
	case machine.Settled:
		return fmt.Sprintf("Settled %d, left %v", len(e.Settle.Items), e.Left)
	case machine.Timer:
		return "Timer"
	default:
		return "Stop"
	}
}

func showItems(items []*machine.Item) (text string) {
	for _, it := range items {
		text += " " + Item(it)
	}
	return text
}

func showClaimed(e machine.Claimed) string {
	if e.Failed {
		return "Claimed, failed"
	}
	return "Claimed" + showItems(e.Items)
}

func showFetched(e machine.Fetched) string {
	names := make([]string, len(e.Items))
	for i, item := range e.Items {
		names[i] = Item(item)
	}
	text := "Fetched " + strings.Join(names, " ")
	if e.Failed {
		text += "failed"
	}
	if e.Unanswered {
		text += "unanswered"
	}
	if e.More {
		text += "nothing, more"
	}
	if e.End {
		text += " end"
	}
	return text
}

// notBegun returns why a transaction did not begin.
func notBegun(e machine.Marked) string {
	if e.CopyBusy {
		return "copy busy"
	}
	return e.Class.String()
}

func showMarked(e machine.Marked) string {
	if e.Class != store.ClassNone {
		return fmt.Sprintf("Marked f%d: %s", e.Flight.Number, notBegun(e))
	}
	names := make([]string, len(e.Verdicts))
	for i, v := range e.Verdicts {
		names[i] = v.String()
	}
	return fmt.Sprintf("Marked f%d: %s", e.Flight.Number, strings.Join(names, ", "))
}

// Action returns an action as histories show it.
func Action(a machine.Action) string {
	switch a := a.(type) {
	case machine.Fetch:
		return fmt.Sprintf("Fetch %d of %d bytes", a.Messages, a.Bytes)
	case machine.CancelFetch:
		return fmt.Sprintf("CancelFetch, idle: %v", a.Idle)
	case machine.Begin:
		return showBegin(a)
	case machine.Run:
		return fmt.Sprintf("Run f%d %v for %v", a.Flight.Number, a.Fresh, a.Budget)
	case machine.StopRun:
		return fmt.Sprintf("StopRun f%d, abort: %v", a.Flight.Number, a.Abort)
	case machine.Commit:
		return showCommit(a)
	case machine.Rollback:
		return fmt.Sprintf("Rollback f%d", a.Flight.Number)
	case machine.Kill:
		return fmt.Sprintf("Kill f%d", a.Flight.Number)
	case *machine.Settle:
		return showSettle(a)
	default:
		return showQuiet(a)
	}
}

// showQuiet returns the text of an action that uses neither the store nor the broker.
func showQuiet(a machine.Action) string {
	switch a := a.(type) {
	case machine.ClaimRows:
		return fmt.Sprintf("ClaimRows %d of %d bytes", a.Messages, a.Bytes)
	case machine.Unclaim:
		return "Unclaim" + showItems(a.Items)
	case machine.Over:
		return fmt.Sprintf("Over %s as %s", Item(a.Item), a.Ending.String())
	case machine.Flow:
		return fmt.Sprintf("Flow %s on: %v", Lane(a.Lane), a.On)
	case machine.Release:
		return "Release " + Lane(a.Lane)
	case machine.Wake:
		return fmt.Sprintf("Wake at %v", a.At)
	case machine.Report:
		return fmt.Sprintf("Report %s %s, wait %v, %s, %d", Word(ReportNames[:], a.Kind), Item(a.Item), a.Wait, a.Part, a.N)
	case machine.Done:
		return fmt.Sprintf("Done, halted: %v by %s, idle: %v", a.Halted, Item(a.Item), a.Idle)
	default:
		return fmt.Sprintf("%T", a)
	}
}

func showBegin(a machine.Begin) string {
	text := fmt.Sprintf("Begin f%d worker %d, serial: %v:", a.Flight.Number, a.Flight.Worker, a.Serial)
	for _, e := range a.Flight.Entries {
		text += fmt.Sprintf(" %s %s;", Word(AsNames[:], e.As), Item(e.Item))
	}
	return text
}

func showCommit(a machine.Commit) string {
	text := fmt.Sprintf("Commit f%d trim %v", a.Flight.Number, a.Trim)
	for _, r := range a.Rows {
		text += fmt.Sprintf(" row %d %s repeat: %v conflict: %v", r.Entry, Word(AsNames[:], r.As), r.Repeat, r.Conflict)
	}
	return text
}

func showSettle(a *machine.Settle) string {
	text := "Settle"
	for _, s := range a.Items {
		text += fmt.Sprintf(" %s %s as %s;", s.Kind.String(), Item(s.Item), s.Ending.String())
	}
	return text
}
