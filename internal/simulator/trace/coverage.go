package trace

import (
	_ "embed" // for required.txt
	"strings"

	"github.com/semel-go/semel/internal/machine"
)

// Coverage counts what was met, by kind and name.
type Coverage map[string]map[string]int64

// Add counts a name of a kind.
func (c Coverage) Add(kind, name string) {
	if c[kind] == nil {
		c[kind] = map[string]int64{}
	}
	c[kind][name]++
}

// AddStep counts an event, what a machine answered, and how deliveries and claims ended with that.
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

// required is what a long row of seeds must meet, a kind and a name on each line: the fault
// points, the faults, every event and action in each of its forms, how deliveries ended, and how
// an entry was marked, what the store said about it and how its flight ended. Names that are met
// too seldom to be sure of are not required.
//
//go:embed required.txt
var required string

// Unreached lists what a long row of seeds must meet and c does not count.
func (c Coverage) Unreached() (names []string) {
	for line := range strings.Lines(required) {
		line = strings.TrimSpace(line)
		if kind, name, _ := strings.Cut(line, ": "); c[kind][name] == 0 {
			names = append(names, line)
		}
	}
	return names
}

// Laws returns the laws that the checker can see broken and that a long row of seeds must test.
func Laws() (laws []string) {
	for line := range strings.Lines(required) {
		if law, is := strings.CutPrefix(strings.TrimSpace(line), "law: "); is {
			laws = append(laws, law)
		}
	}
	return laws
}
