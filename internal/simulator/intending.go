package simulator

import (
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// Names of the consumer that writes intents and of the consumer that sends them.
const (
	nameOfMain   = "orders"
	nameOfSender = "mailer"
)

// drawIntents decides whether handlers write intents, which a second consumer sends. The decision uses a number that
// was already drawn for another purpose, so that a seed without intents still gives the same run as before.
func (w *world) drawIntents() {
	p := &w.Plan
	if !p.Intends() {
		return
	}
	s := newWorld(nil, w.make)
	s.shared, s.main, w.sender = w.shared, w, s
	p.Suppresses = w.choices.Flip()
	s.Plan = w.drawSender()
	s.open()
	s.store.Claiming = s.checkClaimable
}

// drawSender draws the plan of the sender, the consumer that sends intents. The source of the sender has one lane
// without messages.
func (w *world) drawSender() plan.Plan {
	c, main := w.choices, &w.Plan
	p := plan.Plan{Has: main.Has, Rate: main.Rate, Named: main.Named, Idler: true, Processes: []int{1, 1, 2}[c.Below(3)],
		Lanes: 1, Span: main.Span, Lag: main.Lag, Timeout: main.Timeout, Away: main.Away}
	for _, kind := range []plan.Trouble{plan.TroubleRevoke, plan.TroubleLose, plan.TroubleElsewhere, plan.TroubleCopies, plan.TroubleContent, plan.TroubleSettle, plan.TroubleFetch} {
		p.Has[kind] = false
	}
	p.Config = plan.DrawConfig(c)
	p.Config.Lanes, p.Config.IdleExit, p.Config.Unmarked, p.Config.OneAttempt = machine.NoOrder, 0, false, false
	p.DrawInbox(c)
	p.CallOut(c)
	return p
}

// handlerMessage returns the message of an entry as the handler gets it, with headers that differ between attempts
// and copies.
func (f *flight) handlerMessage(entry int, m *model.Message) *semel.Message {
	h := handOf(f.of.Entries[entry].Item)
	trace := fmt.Sprintf("00-%d-%d-%d", h.delivery.Position, h.delivery.Count, h.arrival)
	cause := causeOf(m, semel.Header{Name: "traceparent", Value: []byte(trace)})
	cause.Attempt, cause.Origin = f.of.Entries[entry].Item.Attempt(), semel.Origin{Offset: int64(h.delivery.Position)}
	return cause
}

// causeOf returns a message as a handler gets it.
func causeOf(m *model.Message, headers ...semel.Header) *semel.Message {
	return semel.NewMessage(semel.Key{Consumer: nameOfMain, Source: m.Source, ID: m.Identity}, nil, headers...)
}

// intentsOf returns the intents that a handler, or a step of it, writes for a message. The intents depend only on the
// message and the step.
func (w *world) intentsOf(m *model.Message, step string) (all []semel.Intent) {
	body := fmt.Append(nil, m.Print.Sum[:15], step)
	kind := m.Kind()
	for i := range 1 + kind%2 {
		n := semel.Intent{To: nameOfSender, Purpose: "receipt" + step, Recipient: "r" + strconv.Itoa(i), Body: body}
		if kind%5 == 0 {
			n.Key = "order " + m.ID + step + n.Recipient
		}
		all = append(all, n)
	}
	return all
}

// intend writes the intents of a message in a transaction. If writing fails, intend returns the failure of the handler.
func (w *world) intend(t *model.Transaction, m *model.Message, step string, cause *semel.Message) *machine.Failure {
	all := w.intentsOf(m, step)
	verdicts := make([]store.Verdict, len(all))
	var fresh []model.Intent
	for i := range all {
		key, sent, err := intents.Message(cause, &all[i])
		if err != nil {
			w.broke("E1", "%s writes no intent: %v", m.Name(), err)
			return nil
		}
		n := model.Intent{ID: key.Source + "/" + key.ID, Message: sent, Print: intents.Print(&all[i]), Of: m, Step: step, Parked: w.Plan.Suppresses && m.Kind()%4 == 0 || t.Quiet, Quiet: t.Quiet, Key: all[i].Key}
		sent.Identity = key
		if holder := w.sender.store.Intended[n.ID]; holder != nil && holder.Open && holder != t {
			w.coverage.Add("fault", "an intent is written by another at the same time")
			// the store knows that another transaction has the lock
			return &machine.Failure{Class: store.ClassContended, Outside: true, Err: errHandler}
		}
		if verdicts[i] = w.sender.store.JudgeIntent(t, n); verdicts[i].Kind == store.Fresh {
			fresh = append(fresh, n)
		} else if verdicts[i].Kind == store.Seen {
			w.coverage.Add("fault", "an intent is written a second time")
		}
		w.wroteIntent(n)
		w.saysTheSame(t, n, verdicts[i])
	}
	for i := range fresh {
		t.Intents = append(t.Intents, fresh[i])
		w.sender.store.Intended[fresh[i].ID] = t
	}
	err := intents.Judge(all, verdicts)
	if w.judgedIntents(m, verdicts, err); err != nil {
		w.coverage.Add("fault", "an intent has another content")
		w.clashes(m)
		m.Failed++
		return &machine.Failure{Class: store.ClassPermanent, Decision: semel.DecidePermanent, Reason: "permanent failure", Err: errHandler}
	}
	return nil
}

// writeIntents writes the intents of a handler before the handler returns. The result says whether the handler can
// continue.
func (f *flight) writeIntents(entry int, m *model.Message, step string) bool {
	w := f.p.w
	if w.sender == nil || f.tx.Cut || f.tx.Broken || w.store.Down {
		return true
	}
	f.tx.Quiet = f.isReplayWithoutEffects(entry)
	failure := w.intend(f.tx, m, step, f.handlerMessage(entry, m))
	if failure == nil {
		return true
	}
	f.ranTo(failure)
	return false
}

// receive puts the intents of a committed transaction into the sender's inbox.
func (w *world) receive(t *model.Transaction) {
	if w.sender == nil || len(t.Intents) == 0 {
		return
	}
	s := w.sender
	for _, n := range t.Intents {
		m := s.drawIntent(n)
		r := &model.Row{Key: model.RowKey{ID: n.ID}, As: machine.AsReceived, Message: m, Print: n.Print, Changed: w.now, OfReplay: n.Quiet}
		r.Dates(w.storeTime(), 0)
		outcome := store.Waiting
		if n.Parked {
			w.coverage.Add("fault", "an intent is written suppressed")
			r.As, r.Reason, outcome = machine.AsParked, reasonname.Suppressed, store.Parked
		}
		s.store.Markers[n.ID] = model.Marker{Outcome: outcome, Print: n.Print, At: w.now}
		s.store.Put(r)
		w.checkIntent(n)
	}
	t.Intents = nil
	s.notify()
}

// drawIntent converts an intent to the sender's message, and draws what the sender's handler does with it.
func (w *world) drawIntent(n model.Intent) *model.Message {
	c := w.choices
	m := &model.Message{Number: len(w.Messages), ID: n.ID, Source: n.Message.Identity.Source, Identity: n.Message.Identity.ID, Print: n.Print,
		Route: uint64(c.Below(64)), Size: c.Between(1, 400), Intent: n.Message, Of: n.Of, OfStep: n.Step, ChosenKey: n.Key}
	if w.Plan.Has[plan.TroubleHandler] && c.Chance(3) {
		m.Conduct = model.Conduct(c.Below(len(model.ConductNames)))
		m.Times = m.Conduct.DrawTimes(c)
	}
	if m.CallsOut(); !w.Plan.Has[plan.TroubleStuck] && m.Conduct == model.Sticks {
		m.Conduct = model.FailsRetryable
	}
	m.Harmless = m.Conduct == model.Succeeds
	w.Messages = append(w.Messages, m)
	return m
}

// suppress lets a person suppress an intent that waits and is not claimed.
func (w *world) suppress(r *model.Row) {
	w.recordFault("a person suppresses", "%s", r.Key.ID)
	r.As, r.Reason, r.By, r.Changed = machine.AsParked, reasonname.Suppressed, nil, w.now
	r.Sends = w.provider.charges[r.Message.ID] + len(r.Starts) // a call that has started may still arrive
	w.store.Remember(r.Key.ID, store.Parked, model.Marker{Print: r.Print, At: w.now})
}

// callKey returns the idempotency key of the call for a claimed message.
func callKey(it *machine.Item, m *model.Message) string {
	if m.Intent != nil {
		return m.Intent.IntentKey("send")
	}
	return it.Source + "/" + it.Identity
}

// worlds returns the world of the main consumer and the world of the sender of intents, if there is a sender.
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

// mostIntents returns the largest number of intents that a sender may get.
func (w *world) mostIntents() int { return 2 * len(w.main.Messages) * max(1, w.main.Plan.Steps) }

// goesOnFor reports whether the sender is still needed, because intents may still be written.
func (w *world) goesOnFor() bool {
	return w.main != nil && !w.main.over || w.stillReplays() || w.rebuildGoesOn()
}

// intentKey identifies an intent: by the message that caused the intent, the step of the message, and the
// recipient.
type intentKey struct {
	id, step, recipient string
	print               semel.Fingerprint
}

func intentKeyOf(n *model.Intent) intentKey {
	return intentKey{n.Of.ID, n.Step, string(n.Message.Key), n.Of.Print}
}

// clashes records that the message's intents exist with other content, so that the message may fail
// permanently.
func (w *world) clashes(m *model.Message) {
	w.arose("E2")
	if !w.HasOtherContent(m) {
		w.broke("E2", "%s writes the intents that it wrote before, and they are said to have another content", m.Name())
	}
	m.Harmless, m.Clashed = false, true
}

// wroteIntent checks that an intent has the same id in each attempt, for each copy and in each process (E2).
func (w *world) wroteIntent(n model.Intent) {
	w.arose("E2")
	of := intentKeyOf(&n)
	of.print = semel.Fingerprint{} // the id depends on the identity of the message, not on its content
	first, known := w.ids[of]
	if !known {
		if by, taken := w.causes[n.ID]; taken {
			w.broke("E2", "an intent of %s for %s has the id of one of %s for %s", of.id, of.recipient, by.id, by.recipient)
		}
		w.ids[of], w.causes[n.ID] = n.ID, of
		return
	}
	if first != n.ID {
		w.broke("E2", "an intent of %s for %s has the id %s, and had %s", of.id, of.recipient, n.ID, first)
	}
}

// saysTheSame checks an intent that the store reported as existing: the existing intent must have the same content
// (E1).
func (w *world) saysTheSame(t *model.Transaction, n model.Intent, v store.Verdict) {
	for _, there := range t.Intents {
		w.sameAs(n, there.ID, there.Message, v)
	}
	if r := w.sender.store.Rows[model.RowKey{ID: n.ID}]; r != nil {
		w.sameAs(n, n.ID, r.Message.Intent, v)
	}
}

func (w *world) sameAs(n model.Intent, id string, there *semel.Message, v store.Verdict) {
	if id == n.ID && v.Kind == store.Seen && string(there.Body) != string(n.Message.Body) {
		w.broke("E1", "an intent of %s is taken for one that is there and says something else", n.Of.Name())
	}
}

// judgedIntents checks that a handler continues only if all its intents are written (E1).
func (w *world) judgedIntents(m *model.Message, verdicts []store.Verdict, err error) {
	for _, v := range verdicts {
		if err == nil && v.Kind != store.Fresh && v.Kind != store.Seen {
			w.broke("E1", "%s goes on, and an intent of its is not written: %s", m.Name(), v.String())
		}
	}
}

// checkIntent checks an intent in the inbox: the same commit must have applied its message (E1).
func (w *world) checkIntent(n model.Intent) {
	w.arose("E1")
	if w.tookEffect(n.Of, n.Step) == 0 {
		w.broke("E1", "an intent of %s is committed, and %s has no effect", n.Of.Name(), n.Of.ID)
	}
}

// tookEffect returns how many times a message, or one of its steps, was applied.
func (w *world) tookEffect(m *model.Message, step string) int {
	if step == "" {
		return w.store.Effects[m.ID]
	}
	n := 0
	for _, done := range w.store.StepsDone[m.ID] {
		if done == step {
			n++
		}
	}
	return n
}

// checkIntents compares the applied messages with the final state of the sender's inbox (E1).
func (w *world) checkIntents() {
	if w.sender == nil {
		return
	}
	there := map[intentKey]*model.Row{}
	for _, r := range w.sender.store.Inbox {
		m := r.Message
		of := intentKey{id: m.Of.ID, step: m.OfStep, recipient: string(m.Intent.Key)}
		if there[of] != nil {
			w.broke("E2", "%s has two intents for %s", m.Of.Name(), of.recipient)
		}
		there[of] = r
		w.checkSent(r)
	}
	for _, m := range w.Messages {
		for _, step := range w.stepsOf(m) {
			if w.past[m.ID] || w.tookEffect(m, step) == 0 {
				continue
			}
			for _, n := range w.intentsOf(m, step) {
				if there[intentKey{id: m.ID, step: step, recipient: n.Recipient}] == nil {
					w.broke("E1", "%s took effect, and its intent for %s is not there", m.Name(), n.Recipient)
				}
			}
		}
	}
}

// stepsOf returns the applied steps of a message. For a message without steps, the result has one empty name.
func (w *world) stepsOf(m *model.Message) []string {
	if done := w.store.StepsDone[m.ID]; len(done) > 0 {
		return done
	}
	return []string{""}
}

// checkSent checks an intent at the end of a run: the intent was sent, or it waits for a person (E2).
func (w *world) checkSent(r *model.Row) {
	charged := w.sender.provider.charges[r.Message.ID]
	switch {
	case r.Waits():
		w.broke("E2", "the intent %s waits, and nobody will send it", r.Message.Name())
	case r.As == machine.AsApplied && charged == 0:
		w.broke("E2", "the intent %s is done, and was not sent", r.Message.Name())
	case r.Reason == reasonname.Suppressed && r.Sends < charged:
		w.broke("E4", "the intent %s is suppressed, and was sent %d times", r.Message.Name(), charged)
	}
}

// checkClaimable checks that no process claims a suppressed intent (E4).
func (w *world) checkClaimable(r *model.Row) {
	if w.main == nil {
		return
	}
	w.arose("E4")
	if r.OfReplay {
		w.broke("E4", "the intent %s is claimed, and is of a replay without effects", r.Message.Name())
	}
	if m, marked := w.store.Markers[r.Key.ID]; r.Reason == reasonname.Suppressed || marked && m.Outcome == store.Parked {
		w.broke("E4", "the intent %s is claimed, and is suppressed or waits for a person", r.Message.Name())
	}
}
