package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// drawCalls lets handlers call out, as those of consumer.NewLeased do: what they do is in no
// transaction. Whether they do is told by a number that was drawn before, so that the
// other seeds keep their histories.
func (p *plan) drawCalls(c *choices) {
	if !p.config.Wait || p.config.Seed%7 > 1 {
		return
	}
	p.callOut(c)
}

// callOut lets handlers call out.
func (p *plan) callOut(c *choices) {
	p.calls, p.asks = true, c.flip()
	if c.flip() {
		p.processes = 2
	}
	if c.flip() {
		p.lease = min(p.lease, max(p.timeout/2, 150*time.Millisecond))
	}
	p.config.ClaimsAlone, p.config.Keep, p.config.Receive = true, true, true
	p.window = p.timeout + time.Duration(c.between(1, 16))*p.timeout/4
	switch c.below(4) {
	case 2:
		p.window = calls.Never
	case 3:
		p.window = calls.Always
	}
}

// rule is what the policy says of the provider.
func (p *plan) rule() calls.Rule {
	return calls.Rule{Window: p.window, Timeout: p.timeout, Asks: p.asks}
}

// callsOut lets a message's handler behave as one can that only calls: it has no
// transaction that could break, or meet what others do.
func (m *message) callsOut() {
	switch m.conduct {
	case breaksQuietly, failsAtCommit, meetsContention, meetsDown:
		m.conduct = failsRetryable
	case alwaysContends, alwaysDown:
		m.conduct = failsForGood
	}
}

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
	claim   *claim
	token   uint64
	message *message
	key     string
	// refused: it was not charged for, and will not be; failure is what the handler says.
	refused bool
	failure machine.Failure
}

// remembers reports whether the provider knows a key.
func (w *world) remembers(key string) bool {
	first, known := w.provider.known[key]
	switch w.plan.window {
	case calls.Always:
		return known
	case calls.Never:
		return false
	}
	return known && w.now-first < w.plan.window
}

// arrive is a call that comes to the provider, whoever has made it and has died since.
func (w *world) arrive(c *call) {
	m, p := c.message, w.provider
	if w.hurt(troubleHandler) { // it has no room, say
		w.fault("the provider refuses before it looks at the key", "%s", m.name())
		m.doubt()
		m.failed++
		c.refused, c.failure = true, machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Err: errHandler}
		return
	}
	if w.remembers(c.key) { // it answers as it did the first time
		w.coverage.add("fault", "a key that was charged for is used again")
		return
	}
	if m.times > 0 {
		m.fail()
		c.refused, c.failure = true, *c.f.blame(m)
		return
	}
	p.known[c.key] = w.now
	p.charged[m.id]++
	w.note("charged: %s", m.name())
	w.checkCharge(m)
}

// deny is an answer, or a word of a person, that there is no charge.
func (w *world) deny(m *message) { w.provider.denied[m.id]++ }
