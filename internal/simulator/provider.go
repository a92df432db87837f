package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// provider is the other side of calls. It charges once for each key that it knows.
type provider struct {
	// known is when it was charged for a key first that it still knows.
	known map[string]time.Duration
	// The rest is the checker's. charged counts the charges of an identity; denied, how
	// often somebody was told that there is none, or said so.
	charged, denied map[string]int
	// keys are the first that were used for an identity, made its calls.
	keys map[string]string
	made map[string]int
	// underWay are calls that were made and whose handlers have not returned.
	underWay []*call
}

func newProvider() *provider {
	return &provider{known: map[string]time.Duration{}, charged: map[string]int{}, denied: map[string]int{}, keys: map[string]string{}, made: map[string]int{}}
}

// call is one of a handler to the provider.
type call struct {
	f       *flight
	claim   *model.Claim
	token   uint64
	message *model.Message
	key     string
	// refused: it was not charged for, and will not be; failure is what the handler says.
	refused bool
	failure machine.Failure
}

// remembers reports whether the provider knows a key.
func (w *world) remembers(key string) bool {
	first, known := w.provider.known[key]
	switch w.plan.Window {
	case calls.Always:
		return known
	case calls.Never:
		return false
	}
	return known && w.now-first < w.plan.Window
}

// arrive is a call that comes to the provider, whoever has made it and has died since.
func (w *world) arrive(c *call) {
	m, p := c.message, w.provider
	if w.hurt(plan.TroubleHandler) { // it has no room, say
		w.fault("the provider refuses before it looks at the key", "%s", m.Name())
		m.Doubt()
		m.Failed++
		c.refused, c.failure = true, machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Err: errHandler}
		return
	}
	if w.remembers(c.key) { // it answers as it did the first time
		w.coverage.Add("fault", "a key that was charged for is used again")
		return
	}
	if m.Times > 0 {
		m.Fail()
		c.refused, c.failure = true, *c.f.blame(m)
		return
	}
	p.known[c.key] = w.now
	p.charged[m.ID]++
	w.note("charged: %s", m.Name())
	w.checkCharge(m)
}

// deny is an answer, or a word of a person, that there is no charge.
func (w *world) deny(m *model.Message) { w.provider.denied[m.ID]++ }
