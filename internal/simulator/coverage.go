package simulator

import (
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// cover counts a step.
func (p *process) cover(e machine.Event, actions []machine.Action) {
	w := p.w
	w.coverage.Add("event", trace.EventName(e))
	for _, a := range actions {
		w.coverage.Add("action", trace.ActionName(a))
		if s, ok := a.(*machine.Settle); ok {
			for _, i := range s.Items {
				w.coverage.Add("settled", i.Kind.String()+" as "+i.Ending.String())
			}
		}
		if o, ok := a.(machine.Over); ok {
			w.coverage.Add("settled", "claim as "+o.Ending.String())
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
		p.w.coverage.Add("transition", trace.ClaimWord(e)+trace.Word(trace.AsNames[:], e.As)+", "+f.verdicts[i].String()+", "+x.Outcome.String())
	}
}
