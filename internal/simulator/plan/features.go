package plan

import (
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// DrawInbox draws the settings of a consumer that has an inbox.
func (p *Plan) DrawInbox(c *chance.Choices) {
	conf := &p.Config
	conf.Inbox, conf.Wait = true, !conf.Unmarked
	conf.Poll = time.Duration(c.Between(1, 10)) * 500 * time.Millisecond
	p.Lease, p.Notifies = time.Duration(c.Between(1, 20))*150*time.Millisecond, c.Flip()
	if conf.Wait && c.Flip() {
		conf.Keep, conf.Receive = true, c.Flip()
	}
}

// drawCalls decides whether handlers make calls without a transaction, like the handlers of
// consumer.NewLeased. The choice depends on the seed's number and takes no random number, so the histories of
// seeds without calls stay the same.
func (p *Plan) drawCalls(c *chance.Choices) {
	if !p.Config.Wait || p.Config.Seed%7 > 1 {
		return
	}
	p.CallOut(c)
}

// CallOut draws the settings with which handlers call the provider.
func (p *Plan) CallOut(c *chance.Choices) {
	p.Calls, p.asks = true, c.Flip()
	if c.Flip() {
		p.Processes = 2
	}
	if c.Flip() {
		p.Lease = min(p.Lease, max(p.Timeout/2, 150*time.Millisecond))
	}
	p.Config.ClaimsAlone, p.Config.Keep, p.Config.Receive = true, true, true
	p.Window = p.Timeout + time.Duration(c.Between(1, 16))*p.Timeout/4
	switch c.Below(4) {
	case 2:
		p.Window = calls.Never
	case 3:
		p.Window = calls.Always
	}
}

// Rule returns the policy's rule for calls of the provider.
func (p *Plan) Rule() calls.Rule {
	return calls.Rule{Window: p.Window, Timeout: p.Timeout, Asks: p.asks}
}

// change is a change to the steps of a consumer that a later release makes.
type change uint8

const (
	Unchanged change = iota
	RenamesFirst
	RenamesSecond
	Swaps
	Adds
	Removes
	changes
)

// drawSteps decides whether messages have several steps, like those of consumer.NewSteps. The decision draws no random
// number, so the histories of seeds without steps stay the same.
func (p *Plan) drawSteps(c *chance.Choices) {
	if !p.Config.Wait || p.Calls || p.Config.Seed%7 != 2 && p.Config.Seed%7 != 3 {
		return
	}
	p.Steps = c.Between(2, 4)
	p.Whole = false // each step belongs to a single message
	p.Config.Keep, p.Config.Receive = true, true
	if c.Flip() {
		p.Processes = 2
	}
	if c.Flip() {
		p.Lease = min(p.Lease, max(p.Timeout, 150*time.Millisecond))
	}
	p.Change = change(c.Below(int(changes)))
	p.ChangeAt = c.Wait(p.Span)
}

// drawStreams decides whether messages are versions of streams. The choice depends on the seed's number and
// takes no random number, so the histories of seeds without streams stay the same.
func (p *Plan) drawStreams(c *chance.Choices) {
	if !p.Config.Wait || p.Calls || p.Config.Seed%2 == 0 {
		return
	}
	p.Streams = c.Between(1, 4)
	if p.Config.OnConflict != machine.EndKeepFirst {
		p.Config.OnConflict = machine.EndPark // runs without streams test the other endings
	}
	p.Config.ClaimsAlone = p.Steps > 0 // package consumer also sets ClaimsAlone for steps
	p.Config.Gap = time.Duration(c.Between(1, 12)) * 500 * time.Millisecond
	if p.Config.Seed%3 == 0 {
		p.Config.GapCap = int64(p.Config.Seed / 3 % 3)
	}
}

// drawBlock decides whether a waiting or parked message in the inbox blocks the later messages of its key or lane. The
// choice depends on the seed's number and takes no random number, so the histories of seeds without this feature stay
// the same.
func (p *Plan) drawBlock() {
	p.Config.Block = p.Config.Wait && !p.Calls && p.Streams == 0 && p.Config.Lanes != machine.NoOrder && p.Config.Seed%4 == 0
}

// drawReaping decides whether the markers of ended messages are removed after some time. The choice depends on
// the seed's number and takes no random number, so the histories of seeds without removal stay the same.
func (p *Plan) drawReaping(c *chance.Choices) {
	drawn := p.Config.Seed%5 < 2 || p.Config.Block && p.Config.Seed%8 == 0
	if !drawn || p.Calls || p.Config.Unmarked || p.Streams > 0 || p.Formers {
		return
	}
	p.Keep = time.Duration(c.Between(1, 20)) * 100 * time.Millisecond
	p.Config.OnExpired = []machine.Ending{machine.EndPark, machine.EndDiscard}[c.Below(2)]
	if p.Config.Block {
		p.Config.OnExpired = machine.EndPark // a parked message blocks later messages of its key or lane
	}
	if p.Config.OnConflict == machine.EndDeadLetter || p.Config.OnExhausted == machine.EndDeadLetter {
		p.Config.OnExpired = machine.EndDeadLetter
	}
}

// drawTwins decides whether persons act on the rows of identities that have several contents. The choice depends on the
// seed's number and takes no random number, so the histories of seeds without these persons stay the same.
func (p *Plan) drawTwins() {
	p.Twins = p.Config.Wait && p.Prints && !p.Formers && !p.Replays() && p.Keep == 0 && p.Config.Seed%11 < 3
	if !p.Twins {
		return
	}
	p.Has[TroubleContent], p.Has[TroubleHandler] = true, true
	for _, then := range []*machine.Ending{&p.Config.OnConflict, &p.Config.OnExhausted} {
		if *then == machine.EndHalt || *then == machine.EndKeepFirst {
			*then = machine.EndPark
		}
	}
}

// drawClocks decides whether the store's clock is wrong for some time. The decision uses the seed and draws no random
// number, so the histories of all other seeds stay the same.
func (p *Plan) drawClocks() {
	p.Clocks = p.Config.Inbox && p.Keep == 0 && !p.Replays() && p.Config.Seed%13 < 3
}

// drawCanary decides whether some messages have canary reruns (consumer.Config.Canary). The decision uses the seed and
// draws no random number, so the histories of all other seeds stay the same.
func (p *Plan) drawCanary() {
	p.Canary = p.Config.Seed%9 == 2 && !p.Config.Unmarked && !p.Calls && !p.Whole
}

// Intends reports whether handlers write intents.
func (p *Plan) Intends() bool {
	drawn := p.Config.Seed%6 == 1 || p.Config.Unmarked && p.Config.Seed%2 == 0
	return drawn && !p.Calls && !p.Config.OneAttempt
}

// replaying is the part of a plan for replays, rebuilds and operators.
type replaying struct {
	// Again is true if a separate process reads the history again, in the generation of the live processes. Quiet is
	// true if the replaying process has no effects outside of the store.
	Again, Quiet bool
	// Rebuilds is true if a separate process reads the history into a new generation, and the consumer then
	// switches to that generation.
	Rebuilds bool
	// Readers is the number of processes that run the replay, one after the other.
	Readers int
	// Operators is the number of operators who retry parked rows and dead letters.
	Operators int
}

// drawReplays decides whether the run has replays, rebuilds or operators. The decision depends on the number
// of the seed and uses no random number, so the histories of all other seeds stay the same.
func (p *Plan) drawReplays(c *chance.Choices) {
	if p.Config.Seed%8 != 3 || p.Config.Unmarked || p.Config.OneAttempt {
		return
	}
	r := &p.replaying
	if p.Config.Inbox {
		r.Operators = c.Between(1, 3)
	}
	if p.Queue || p.Calls { // a queue has no history, and a provider cannot be told that a call comes from a replay
		return
	}
	r.Quiet, r.Readers = c.Often(3), c.Between(1, 2)
	if p.Config.Inbox || p.Intends() {
		r.Again = true
		return
	}
	r.Rebuilds = c.Flip()
	if r.Again = !r.Rebuilds; r.Rebuilds {
		p.Keep, p.Formers = 0, false
	}
}

// Replays reports whether the run has a replay, a rebuild or operators.
func (p *Plan) Replays() bool { return p.Again || p.Rebuilds || p.Operators > 0 }
