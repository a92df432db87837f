package simulator

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// history is what happened, as text.
type history struct{ text strings.Builder }

func (h *history) line(now time.Duration, format string, args ...any) {
	fmt.Fprintf(&h.text, "%12.3fms ", float64(now)/float64(time.Millisecond))
	fmt.Fprintf(&h.text, format, args...)
	h.text.WriteByte('\n')
}

// step writes an event and what the machine answered; of whom, where there are
// several.
func (h *history) step(p *process, e machine.Event, actions []machine.Action) {
	whose := ""
	if len(p.w.seats) > 1 {
		whose = fmt.Sprintf("process %d: ", p.seat+1)
	}
	if p.w.live != nil {
		whose = "rebuild, " + whose
	}
	if p.w.main != nil {
		whose = "sender, " + whose
	}
	h.line(p.w.now, "%s%s", whose, showEvent(e))
	for _, a := range actions {
		fmt.Fprintf(&h.text, "%18s-> %s\n", "", showAction(a))
	}
}

func showLane(l source.Lane) string { return fmt.Sprintf("%s/%d", l.ID, l.Epoch) }

func showItem(i *machine.Item) string {
	if i == nil {
		return "nobody"
	}
	d := handOf(i).delivery
	if c := handOf(i).claim; c != nil {
		return fmt.Sprintf("%s(%s)@inbox:%d", d.message.name(), c.row.key.id, c.token())
	}
	return fmt.Sprintf("%s(%s)@%s:%d", d.message.name(), d.message.id, showLane(i.Lane), d.position)
}

func showEvent(e machine.Event) string {
	switch e := e.(type) {
	case machine.Given:
		return "Given " + showLane(e.Lane)
	case machine.Revoking:
		return "Revoking " + showLane(e.Lane)
	case machine.Lost:
		return "Lost " + showLane(e.Lane)
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
			text += fmt.Sprintf(", failed: %s, %s, after %v", e.Class.String(), word(decisionNames[:], e.Decision), e.After)
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
		text += " " + showItem(it)
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
		names[i] = showItem(item)
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

// notBegun says why a transaction did not open.
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

func showAction(a machine.Action) string {
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

// showQuiet shows the actions that touch neither store nor broker.
func showQuiet(a machine.Action) string {
	switch a := a.(type) {
	case machine.ClaimRows:
		return fmt.Sprintf("ClaimRows %d of %d bytes", a.Messages, a.Bytes)
	case machine.Unclaim:
		return "Unclaim" + showItems(a.Items)
	case machine.Over:
		return fmt.Sprintf("Over %s as %s", showItem(a.Item), a.Ending.String())
	case machine.Flow:
		return fmt.Sprintf("Flow %s on: %v", showLane(a.Lane), a.On)
	case machine.Release:
		return "Release " + showLane(a.Lane)
	case machine.Wake:
		return fmt.Sprintf("Wake at %v", a.At)
	case machine.Report:
		return fmt.Sprintf("Report %s %s, wait %v, %s, %d", word(reportNames[:], a.Kind), showItem(a.Item), a.Wait, a.Part, a.N)
	case machine.Done:
		return fmt.Sprintf("Done, halted: %v by %s, idle: %v", a.Halted, showItem(a.Item), a.Idle)
	default:
		return fmt.Sprintf("%T", a)
	}
}

func showBegin(a machine.Begin) string {
	text := fmt.Sprintf("Begin f%d worker %d, serial: %v:", a.Flight.Number, a.Flight.Worker, a.Serial)
	for _, e := range a.Flight.Entries {
		text += fmt.Sprintf(" %s %s;", word(asNames[:], e.As), showItem(e.Item))
	}
	return text
}

func showCommit(a machine.Commit) string {
	text := fmt.Sprintf("Commit f%d trim %v", a.Flight.Number, a.Trim)
	for _, r := range a.Rows {
		text += fmt.Sprintf(" row %d %s repeat: %v conflict: %v", r.Entry, word(asNames[:], r.As), r.Repeat, r.Conflict)
	}
	return text
}

func showSettle(a *machine.Settle) string {
	text := "Settle"
	for _, s := range a.Items {
		text += fmt.Sprintf(" %s %s as %s;", s.Kind.String(), showItem(s.Item), s.Ending.String())
	}
	return text
}
