package simulator

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Coverage counts what was met, by kind and name.
type Coverage map[string]map[string]int64

func (c Coverage) add(kind, name string) {
	names := c[kind]
	if names == nil {
		names = map[string]int64{}
		c[kind] = names
	}
	names[name]++
}

// Merge adds d's counts.
func (c Coverage) Merge(d Coverage) {
	for kind, names := range d {
		if c[kind] == nil {
			c[kind] = map[string]int64{}
		}
		for name, n := range names {
			c[kind][name] += n
		}
	}
}

// cover counts a step.
func (p *process) cover(e machine.Event, actions []machine.Action) {
	w := p.w
	w.coverage.add("event", eventName(e))
	for _, a := range actions {
		w.coverage.add("action", actionName(a))
		if s, ok := a.(*machine.Settle); ok {
			for _, i := range s.Items {
				w.coverage.add("settled", i.Kind.String()+" as "+i.Ending.String())
			}
		}
		if o, ok := a.(machine.Over); ok {
			w.coverage.add("settled", "claim as "+o.Ending.String())
		}
	}
	if x, ok := e.(machine.Ended); ok {
		p.coverEnded(x)
	}
}

// coverEnded counts the transitions: how an entry was marked, what the store
// said, and how its flight ended.
func (p *process) coverEnded(x machine.Ended) {
	f := p.last
	if f == nil || f.of != x.Flight {
		return
	}
	for i, e := range x.Flight.Entries {
		p.w.coverage.add("transition", claimWord(e)+word(asNames[:], e.As)+", "+f.verdicts[i].String()+", "+x.Outcome.String())
	}
}

func eventName(e machine.Event) string {
	switch e := e.(type) {
	case machine.Given:
		return "given"
	case machine.Revoking:
		return "revoking"
	case machine.Lost:
		return "lost"
	case machine.Fetched:
		return fetchedName(e)
	case machine.Claimed:
		return claimedName(e)
	case machine.Due:
		return "due"
	case machine.Marked:
		return "marked " + notBegun(e)
	case machine.Ran:
		if e.Failed {
			return "ran, failed " + e.Class.String() + " " + word(decisionNames[:], e.Decision)
		}
		return "ran"
	case machine.Stuck:
		return "stuck"
	case machine.Ended:
		return endedName(e)
	case machine.Settled:
		if len(e.Left) > 0 {
			return "settled but for some"
		}
		return "settled"
	case machine.Timer:
		return "timer"
	default:
		return "stop"
	}
}

func claimedName(e machine.Claimed) string {
	switch {
	case e.Failed:
		return "claimed, failed"
	case len(e.Items) == 0:
		return "claimed nothing"
	}
	return "claimed"
}

func fetchedName(e machine.Fetched) string {
	switch {
	case e.Failed && len(e.Items) > 0:
		return "fetched some, failed"
	case e.Failed:
		return "fetched, failed"
	case e.Unanswered:
		return "fetched, unanswered"
	case e.End:
		return "fetched, end"
	case e.More:
		return "fetched nothing, more"
	case len(e.Items) == 0:
		return "fetched nothing"
	default:
		return "fetched"
	}
}

func endedName(e machine.Ended) string {
	name := "ended, " + e.Outcome.String()
	if e.Outcome == store.NotCommitted {
		name += " " + e.Class.String()
	}
	if e.Culprit >= 0 {
		name += ", culprit named"
	}
	return name
}

func actionName(a machine.Action) string {
	switch a := a.(type) {
	case machine.Fetch:
		return "fetch"
	case machine.CancelFetch:
		return fmt.Sprintf("cancel fetch, idle: %v", a.Idle)
	case machine.Begin:
		return fmt.Sprintf("begin, serial: %v", a.Serial)
	case machine.Run:
		return "run"
	case machine.StopRun:
		return fmt.Sprintf("stop run, abort: %v", a.Abort)
	case machine.Commit:
		return commitName(a)
	case machine.Rollback:
		return "rollback"
	case machine.Kill:
		return "kill"
	case *machine.Settle:
		return "settle"
	case machine.ClaimRows:
		return "claim rows"
	case machine.Unclaim:
		return "unclaim"
	case machine.Over:
		return "over"
	case machine.Flow:
		return fmt.Sprintf("flow, on: %v", a.On)
	case machine.Release:
		return "release"
	case machine.Wake:
		return "wake"
	case machine.Report:
		return "report " + word(reportNames[:], a.Kind)
	case machine.Done:
		return doneName(a)
	}
	return "unknown"
}

func commitName(a machine.Commit) string {
	name := "commit"
	if len(a.Trim) > 0 {
		name += ", trimmed"
	}
	if len(a.Rows) > 0 {
		name += ", with rows"
	}
	return name
}

func doneName(a machine.Done) string {
	switch {
	case a.Halted:
		return "done, halted"
	case a.Idle:
		return "done, idle"
	default:
		return "done"
	}
}

// claimWord says of an entry that it is a claim.
func claimWord(e machine.Entry) string {
	if e.Item.Claim != nil {
		return "claim, "
	}
	return ""
}

// Laws returns the laws that the checker can see broken and that a long row of seeds must test.
func Laws() (laws []string) {
	for law := range strings.Lines(required["law"]) {
		if law = strings.TrimSpace(law); law != "" {
			laws = append(laws, law)
		}
	}
	return laws
}
