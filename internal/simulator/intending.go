package simulator

import (
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// The names of the consumers.
const (
	nameOfMain   = "orders"
	nameOfSender = "mailer"
)

// intent is one that a transaction has written.
type intent struct {
	id      string // of its key, as the store of the sender knows it
	message *semel.Message
	print   semel.Fingerprint
	// of is the message that causes it, step the step of that; parked: it is suppressed.
	of     *message
	step   string
	parked bool
	key    string // that was chosen for it
	// quiet: it is of a replay without effects.
	quiet bool
}

// drawIntents lets handlers write intents, which a second consumer sends. Whether they do
// is told by a number that was drawn before, so that the other seeds keep their histories.
func (w *world) drawIntents() {
	p := &w.plan
	if !p.intends() {
		return
	}
	s := newWorld(nil, w.make)
	s.shared, s.main, w.sender = w.shared, w, s
	p.suppresses = w.choices.flip()
	s.plan = w.drawSender()
	s.open()
	s.store.claiming = s.checkClaimable
}

// intends reports whether handlers write intents.
func (p *plan) intends() bool {
	drawn := p.config.Seed%6 == 1 || p.config.Unmarked && p.config.Seed%2 == 0
	return drawn && !p.calls && !p.config.OneAttempt
}

// drawSender draws what the sender is made of. It has no source, as far as it matters: one
// with a lane of which nothing comes.
func (w *world) drawSender() plan {
	c, main := w.choices, &w.plan
	p := plan{has: main.has, rate: main.rate, named: main.named, idler: true, processes: []int{1, 1, 2}[c.below(3)],
		lanes: 1, span: main.span, lag: main.lag, timeout: main.timeout, away: main.away}
	for _, kind := range []trouble{troubleRevoke, troubleLose, troubleElsewhere, troubleCopies, troubleContent, troubleSettle, troubleFetch} {
		p.has[kind] = false
	}
	p.config = drawConfig(c)
	p.config.Lanes, p.config.IdleExit, p.config.Unmarked, p.config.OneAttempt = machine.NoOrder, 0, false, false
	p.drawInbox(c)
	p.callOut(c)
	return p
}

// cause is the message of an entry as its handler gets it: with what differs between
// attempts and copies.
func (f *flight) cause(entry int, m *message) *semel.Message {
	h := handOf(f.of.Entries[entry].Item)
	trace := fmt.Sprintf("00-%d-%d-%d", h.delivery.position, h.delivery.count, h.arrival)
	cause := m.cause(semel.Header{Name: "traceparent", Value: []byte(trace)})
	cause.Attempt, cause.Origin = f.of.Entries[entry].Item.Attempt(), semel.Origin{Offset: int64(h.delivery.position)}
	return cause
}

// cause is a message as a handler sees it.
func (m *message) cause(headers ...semel.Header) *semel.Message {
	return semel.NewMessage(semel.Key{Consumer: nameOfMain, Source: m.source, ID: m.identity}, nil, headers...)
}

// intentsOf are the intents that a handler, or a step, writes for a message: made of it
// alone.
func (w *world) intentsOf(m *message, step string) (all []semel.Intent) {
	body := fmt.Append(nil, m.print.Sum[:15], step)
	kind := m.kind()
	for i := range 1 + kind%2 {
		n := semel.Intent{To: nameOfSender, Purpose: "receipt" + step, Recipient: "r" + strconv.Itoa(i), Body: body}
		if kind%5 == 0 {
			n.Key = "order " + m.id + step + n.Recipient
		}
		all = append(all, n)
	}
	return all
}

// kind is a number that a message shares with its copies.
func (m *message) kind() (n int) {
	for _, b := range []byte(m.id) {
		n += int(b)
	}
	return n
}

// intend writes the intents of a message into a transaction. What it returns is how the
// handler fails that cannot write them.
func (w *world) intend(t *transaction, m *message, step string, cause *semel.Message) *machine.Failure {
	all := w.intentsOf(m, step)
	verdicts := make([]store.Verdict, len(all))
	var fresh []intent
	for i := range all {
		key, sent, err := intents.Message(cause, &all[i])
		if err != nil {
			w.broke("E1", "%s writes no intent: %v", m.name(), err)
			return nil
		}
		n := intent{id: key.Source + "/" + key.ID, message: sent, print: intents.Print(&all[i]), of: m, step: step, parked: w.plan.suppresses && m.kind()%4 == 0 || t.quiet, quiet: t.quiet, key: all[i].Key}
		sent.Identity = key
		if holder := w.sender.store.intended[n.id]; holder != nil && holder.open && holder != t {
			w.coverage.add("fault", "an intent is written by another at the same time")
			return &machine.Failure{Class: store.ClassContended, Outside: true, Err: errHandler} // the store knows who has it
		}
		if verdicts[i] = w.sender.store.judgeIntent(t, n); verdicts[i].Kind == store.Fresh {
			fresh = append(fresh, n)
		} else if verdicts[i].Kind == store.Seen {
			w.coverage.add("fault", "an intent is written a second time")
		}
		w.wroteIntent(n)
		w.saysTheSame(t, n, verdicts[i])
	}
	for i := range fresh {
		t.intents = append(t.intents, fresh[i])
		w.sender.store.intended[fresh[i].id] = t
	}
	err := intents.Judge(all, verdicts)
	if w.judgedIntents(m, verdicts, err); err != nil {
		w.coverage.add("fault", "an intent has another content")
		m.clashes(w)
		m.failed++
		return &machine.Failure{Class: store.ClassPermanent, Decision: semel.DecidePermanent, Reason: "permanent failure", Err: errHandler}
	}
	return nil
}

// judgeIntent says whether an intent is there, in the inbox or in the transaction.
func (s *simStore) judgeIntent(t *transaction, n intent) store.Verdict {
	for _, there := range t.intents {
		if there.id != n.id {
			continue
		}
		if conflicts(there.print, n.print) {
			return store.Verdict{Kind: store.Conflict}
		}
		return store.Verdict{Kind: store.Seen, Was: store.Waiting}
	}
	return s.judge(n.id, n.print)
}

// writes is a handler that writes its intents, before it returns. It reports whether the
// handler can go on.
func (f *flight) writes(entry int, m *message, step string) bool {
	w := f.p.w
	if w.sender == nil || f.tx.cut || f.tx.broken || w.store.down {
		return true
	}
	f.tx.quiet = f.quiet(entry)
	failure := w.intend(f.tx, m, step, f.cause(entry, m))
	if failure == nil {
		return true
	}
	f.ranTo(failure)
	return false
}

// receive puts the intents of a transaction that commits into the sender's inbox.
func (w *world) receive(t *transaction) {
	if w.sender == nil || len(t.intents) == 0 {
		return
	}
	s := w.sender
	for _, n := range t.intents {
		m := s.drawIntent(n)
		r := &row{key: rowKey{id: n.id}, as: machine.AsReceived, message: m, print: n.print, changed: w.now, ofReplay: n.quiet}
		r.dates(w.at(), 0)
		outcome := store.Waiting
		if n.parked {
			w.coverage.add("fault", "an intent is written suppressed")
			r.as, r.reason, outcome = machine.AsParked, semel.ReasonSuppressed, store.Parked
		}
		s.store.markers[n.id] = marker{outcome, n.print, w.now}
		s.store.put(r)
		w.checkIntent(n)
	}
	t.intents = nil
	s.notify()
}

// drawIntent makes the message that a sender gets, and how its handler treats it.
func (w *world) drawIntent(n intent) *message {
	c := w.choices
	m := &message{number: len(w.messages), id: n.id, source: n.message.Identity.Source, identity: n.message.Identity.ID, print: n.print,
		route: uint64(c.below(64)), size: c.between(1, 400), intent: n.message, of: n.of, ofStep: n.step, chosenKey: n.key}
	if w.plan.has[troubleHandler] && c.chance(3) {
		m.conduct = conduct(c.below(len(conductNames)))
		m.times = m.conduct.drawTimes(c)
	}
	if m.callsOut(); !w.plan.has[troubleStuck] && m.conduct == sticks {
		m.conduct = failsRetryable
	}
	m.harmless = m.conduct == succeeds
	w.messages = append(w.messages, m)
	return m
}

// suppress lets a person keep an intent from being sent that waits and that nobody has.
func (w *world) suppress(r *row) {
	w.fault("a person suppresses", "%s", r.key.id)
	r.as, r.reason, r.by, r.changed = machine.AsParked, semel.ReasonSuppressed, nil, w.now
	r.sends = w.provider.charged[r.message.id] + len(r.starts) // a call that was begun may still be made
	w.store.remember(r.key.id, store.Parked, marker{print: r.print, at: w.now})
}

// callKey is the idempotency key of a call for a claimed message.
func callKey(it *machine.Item, m *message) string {
	if m.intent != nil {
		return m.intent.IntentKey("send")
	}
	return it.Source + "/" + it.Identity
}

// worlds are the main one and that of the sender, if there is one.
func (w *world) worlds() []*world {
	switch {
	case w.sender != nil:
		return []*world{w, w.sender}
	case w.main != nil:
		return []*world{w.main, w}
	case w.rebuild != nil:
		return []*world{w, w.rebuild}
	case w.live != nil:
		return []*world{w.live, w}
	}
	return []*world{w}
}

// mostIntents is how many a sender may get of so many messages.
func (w *world) mostIntents() int { return 2 * len(w.main.messages) * max(1, w.main.plan.steps) }

// goesOnFor reports whether a sender has to be there for what may still be written.
func (w *world) goesOnFor() bool {
	return w.main != nil && !w.main.over || w.stillReplays() || w.rebuildGoesOn()
}

// intendElsewhere writes the intents of a message that another process applies. It reports
// whether that can.
func (w *world) intendElsewhere(t *transaction, m *message) bool {
	return w.sender == nil || w.intend(t, m, "", m.cause()) == nil
}
