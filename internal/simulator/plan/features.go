package plan

import (
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// DrawInbox lets the consumer have an inbox.
func (p *Plan) DrawInbox(c *chance.Choices) {
	conf := &p.Config
	conf.Inbox, conf.Wait = true, !conf.Unmarked
	conf.Poll = time.Duration(c.Between(1, 10)) * 500 * time.Millisecond
	p.Lease, p.Notifies = time.Duration(c.Between(1, 20))*150*time.Millisecond, c.Flip()
	if conf.Wait && c.Flip() {
		conf.Keep, conf.Receive = true, c.Flip()
	}
}

// drawCalls lets handlers call out, as those of consumer.NewLeased do: what they do is in no
// transaction. Whether they do is told by a number that was drawn before, so that the
// other seeds keep their histories.
func (p *Plan) drawCalls(c *chance.Choices) {
	if !p.Config.Wait || p.Config.Seed%7 > 1 {
		return
	}
	p.CallOut(c)
}

// CallOut lets handlers call out.
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

// Rule is what the policy says of the provider.
func (p *Plan) Rule() calls.Rule {
	return calls.Rule{Window: p.Window, Timeout: p.Timeout, Asks: p.asks}
}

// change is what a later release does to the steps of its messages.
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

// drawSteps lets messages have several steps, as those of consumer.NewSteps have. Whether
// they do is told by a number that was drawn before, so that the other seeds keep their
// histories.
func (p *Plan) drawSteps(c *chance.Choices) {
	if !p.Config.Wait || p.Calls || p.Config.Seed%7 != 2 && p.Config.Seed%7 != 3 {
		return
	}
	p.Steps = c.Between(2, 4)
	p.Whole = false // each step is one message's
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

// drawStreams lets messages be versions of streams. Whether they are is told by a
// number that was drawn before, so that the other seeds keep their histories.
func (p *Plan) drawStreams(c *chance.Choices) {
	if !p.Config.Wait || p.Calls || p.Config.Seed%2 == 0 {
		return
	}
	p.Streams = c.Between(1, 4)
	if p.Config.OnConflict != machine.EndKeepFirst {
		p.Config.OnConflict = machine.EndPark // what else there is, conflicts of identities show
	}
	p.Config.ClaimsAlone = p.Steps > 0 // as the shell has it
	p.Config.Gap = time.Duration(c.Between(1, 12)) * 500 * time.Millisecond
	if p.Config.Seed%3 == 0 {
		p.Config.GapCap = int64(p.Config.Seed / 3 % 3)
	}
}

// drawBlock lets what comes behind a message that waits in the inbox, or is parked, wait
// there, too. Whether it does is told by a number that was drawn before, so that the
// other seeds keep their histories.
func (p *Plan) drawBlock() {
	p.Config.Block = p.Config.Wait && !p.Calls && p.Streams == 0 && p.Config.Lanes != machine.NoOrder && p.Config.Seed%4 == 0
}

// drawReaping lets what has ended be removed after a while. Whether it is, is told by a
// number that was drawn before, so that the other seeds keep their histories.
func (p *Plan) drawReaping(c *chance.Choices) {
	drawn := p.Config.Seed%5 < 2 || p.Config.Block && p.Config.Seed%8 == 0
	if !drawn || p.Calls || p.Config.Unmarked || p.Streams > 0 || p.Formers {
		return
	}
	p.Keep = time.Duration(c.Between(1, 20)) * 100 * time.Millisecond
	p.Config.OnExpired = []machine.Ending{machine.EndPark, machine.EndDiscard}[c.Below(2)]
	if p.Config.Block {
		p.Config.OnExpired = machine.EndPark // which keeps a line back
	}
	if p.Config.OnConflict == machine.EndDeadLetter || p.Config.OnExhausted == machine.EndDeadLetter {
		p.Config.OnExpired = machine.EndDeadLetter
	}
}

// drawTwins lets persons act on the rows of identities that have several contents. Whether
// they do is told by a number that was drawn before, so that the other seeds keep their
// histories.
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

// drawClocks decides whether the store's clock is wrong for a while. The decision uses the seed
// and draws no random number, so that the other seeds keep their histories.
func (p *Plan) drawClocks() {
	p.Clocks = p.Config.Inbox && p.Keep == 0 && !p.Replays() && p.Config.Seed%13 < 3
}

// Intends reports whether handlers write intents.
func (p *Plan) Intends() bool {
	drawn := p.Config.Seed%6 == 1 || p.Config.Unmarked && p.Config.Seed%2 == 0
	return drawn && !p.Calls && !p.Config.OneAttempt
}

// replaying is what a plan has of replays.
type replaying struct {
	// Again: a process of its own reads the history again, in the generation of the live
	// ones. Quiet: without effects outside of the store.
	Again, Quiet bool
	// Rebuilds: another reads it into a generation of its own, which is switched to.
	Rebuilds bool
	// Readers is how many processes try to, one after the other.
	Readers int
	// Operators replay what was set aside.
	Operators int
}

// drawReplays lets persons replay. Whether they do is told by a number that was drawn
// before, so that the other seeds keep their histories.
func (p *Plan) drawReplays(c *chance.Choices) {
	if p.Config.Seed%8 != 3 || p.Config.Unmarked || p.Config.OneAttempt {
		return
	}
	r := &p.replaying
	if p.Config.Inbox {
		r.Operators = c.Between(1, 3)
	}
	if p.Queue || p.Calls { // there is no history, or whoever is called cannot be told
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

// Replays reports whether somebody replays anything.
func (p *Plan) Replays() bool { return p.Again || p.Rebuilds || p.Operators > 0 }
