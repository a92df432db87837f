package assembly

import (
	"sync"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// underWay are the consumers of this process that have not ended.
type underWay struct {
	mutex sync.Mutex
	under map[string]bool
}

// begin notes a consumer that will run; ended notes its end.
func (r *underWay) begin(name string) (ended func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.under == nil {
		r.under = map[string]bool{}
	}
	r.under[name] = true
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.under, name)
	}
}

// anyOf reports whether one of these still runs.
func (r *underWay) anyOf(names []string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, name := range names {
		if r.under[name] {
			return true
		}
	}
	return false
}

// mayEnd says of a sender whether it may end idle: not while a consumer of this process
// runs that writes intents for it, or its inbox would be found empty before they are
// written. Nil: nobody writes to the consumer.
func (a *Assembly) mayEnd(c *policy.Consumer) func() bool {
	writers := writersTo(a.policy, c)
	if writers == nil {
		return nil
	}
	return func() bool { return !a.runs.anyOf(writers) }
}

// writersTo are the consumers that write intents for a sender. Those that it writes to
// itself, by way of others or not, are left out: two that wait for each other never end.
func writersTo(p *policy.Policy, sender *policy.Consumer) (writers []string) {
	after := map[string]bool{sender.Name: true}
	for grown := true; grown; {
		grown = false
		for _, from := range p.Consumers {
			for _, to := range p.Consumers {
				if after[from.Name] && !after[to.Name] && from.WritesTo(to.Name) {
					after[to.Name], grown = true, true
				}
			}
		}
	}
	for _, c := range p.Consumers {
		if c.WritesTo(sender.Name) && !after[c.Name] {
			writers = append(writers, c.Name)
		}
	}
	return writers
}
