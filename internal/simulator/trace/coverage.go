package trace

import (
	_ "embed" // needed for required.txt
	"strings"

	"github.com/semel-go/semel/internal/machine"
)

// Coverage counts, by kind and name, how often events, faults and so on occurred in runs.
type Coverage map[string]map[string]int64

// Add counts one occurrence.
func (c Coverage) Add(kind, name string) {
	if c[kind] == nil {
		c[kind] = map[string]int64{}
	}
	c[kind][name]++
}

// AddStep counts an event, the actions of the machine, and how these actions end deliveries and claims.
func (c Coverage) AddStep(e machine.Event, actions []machine.Action) {
	c.Add("event", eventName(e))
	for _, a := range actions {
		c.Add("action", actionName(a))
		switch a := a.(type) {
		case *machine.Settle:
			for _, i := range a.Items {
				c.Add("settled", i.Kind.String()+" as "+i.Ending.String())
			}
		case machine.Over:
			c.Add("settled", "claim as "+a.Ending.String())
		}
	}
}

// Merge adds the counts of d.
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

// required lists what a long run must reach. Each line has a kind and a name: fault points, faults, every variant of
// each event and action, endings of deliveries, and transitions. A transition consists of the outcome of an entry, the
// answer of the store, and the end of the batch. Names that are too rare to be certain are not required.
//
//go:embed required.txt
var required string

// Unreached returns the required names that did not occur in c.
func (c Coverage) Unreached() (names []string) {
	for line := range strings.Lines(required) {
		line = strings.TrimSpace(line)
		if kind, name, _ := strings.Cut(line, ": "); c[kind][name] == 0 {
			names = append(names, line)
		}
	}
	return names
}

// Laws returns the laws that a long run must test.
func Laws() (laws []string) {
	for line := range strings.Lines(required) {
		if law, is := strings.CutPrefix(strings.TrimSpace(line), "law: "); is {
			laws = append(laws, law)
		}
	}
	return laws
}
