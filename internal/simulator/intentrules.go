package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// cause is what the checker knows an intent by: the message, its step, and which of its
// intents it is.
type cause struct {
	id, step, recipient string
	print               semel.Fingerprint
}

func (n *intent) cause() cause {
	return cause{n.of.id, n.step, string(n.message.Key), n.of.print}
}

// clashes: the message's intents are there with another content, so that it may fail for
// good.
func (m *message) clashes(w *world) {
	w.arose("E2")
	if !w.hasOtherContent(m) {
		w.broke("E2", "%s writes the intents that it wrote before, and they are said to have another content", m.name())
	}
	m.harmless, m.clashed = false, true
}

// wroteIntent checks that who writes an intent again gives it the id that it had: of an
// attempt, a copy, or another life (E2).
func (w *world) wroteIntent(n intent) {
	w.arose("E2")
	of := n.cause()
	of.print = semel.Fingerprint{} // the id is of the message's identity
	first, known := w.ids[of]
	if !known {
		if by, taken := w.causes[n.id]; taken {
			w.broke("E2", "an intent of %s for %s has the id of one of %s for %s", of.id, of.recipient, by.id, by.recipient)
		}
		w.ids[of], w.causes[n.id] = n.id, of
		return
	}
	if first != n.id {
		w.broke("E2", "an intent of %s for %s has the id %s, and had %s", of.id, of.recipient, n.id, first)
	}
}

// saysTheSame checks that an intent that is said to be there says what this one does (E1).
func (w *world) saysTheSame(t *transaction, n intent, v store.Verdict) {
	for _, there := range t.intents {
		w.sameAs(n, there.id, there.message, v)
	}
	if r := w.sender.store.rows[rowKey{id: n.id}]; r != nil {
		w.sameAs(n, n.id, r.message.intent, v)
	}
}

func (w *world) sameAs(n intent, id string, there *semel.Message, v store.Verdict) {
	if id == n.id && v.Kind == store.Seen && string(there.Body) != string(n.message.Body) {
		w.broke("E1", "an intent of %s is taken for one that is there and says something else", n.of.name())
	}
}

// judgedIntents checks that a handler goes on only where all its intents are there (E1).
func (w *world) judgedIntents(m *message, verdicts []store.Verdict, err error) {
	for _, v := range verdicts {
		if err == nil && v.Kind != store.Fresh && v.Kind != store.Seen {
			w.broke("E1", "%s goes on, and an intent of its is not written: %s", m.name(), v.String())
		}
	}
}

// checkIntent checks an intent that is now in the inbox: its message has taken effect with
// the same commit (E1).
func (w *world) checkIntent(n intent) {
	w.arose("E1")
	if w.tookEffect(n.of, n.step) == 0 {
		w.broke("E1", "an intent of %s is committed, and %s has no effect", n.of.name(), n.of.id)
	}
}

// tookEffect is how often a message, or a step of it, took effect.
func (w *world) tookEffect(m *message, step string) int {
	if step == "" {
		return w.store.effects[m.id]
	}
	n := 0
	for _, done := range w.store.stepsDone[m.id] {
		if done == step {
			n++
		}
	}
	return n
}

// checkIntents holds what took effect against the sender's inbox, when all is over (E1).
func (w *world) checkIntents() {
	if w.sender == nil {
		return
	}
	there := map[cause]*row{}
	for _, r := range w.sender.store.inbox {
		m := r.message
		of := cause{id: m.of.id, step: m.ofStep, recipient: string(m.intent.Key)}
		if there[of] != nil {
			w.broke("E2", "%s has two intents for %s", m.of.name(), of.recipient)
		}
		there[of] = r
		w.checkSent(r)
	}
	for _, m := range w.messages {
		for _, step := range w.stepsOf(m) {
			if w.past[m.id] || w.tookEffect(m, step) == 0 {
				continue
			}
			for _, n := range w.intentsOf(m, step) {
				if there[cause{id: m.id, step: step, recipient: n.Recipient}] == nil {
					w.broke("E1", "%s took effect, and its intent for %s is not there", m.name(), n.Recipient)
				}
			}
		}
	}
}

// stepsOf are the steps of a message that took effect, "" for one that has none.
func (w *world) stepsOf(m *message) []string {
	if done := w.store.stepsDone[m.id]; len(done) > 0 {
		return done
	}
	return []string{""}
}

// checkSent checks that an intent is sent, or waits for a person, when all is over (E2).
func (w *world) checkSent(r *row) {
	charged := w.sender.provider.charged[r.message.id]
	switch {
	case r.waits():
		w.broke("E2", "the intent %s waits, and nobody will send it", r.message.name())
	case r.as == machine.AsApplied && charged == 0:
		w.broke("E2", "the intent %s is done, and was not sent", r.message.name())
	case r.reason == semel.ReasonSuppressed && r.sends < charged:
		w.broke("E4", "the intent %s is suppressed, and was sent %d times", r.message.name(), charged)
	}
}

// checkClaimable checks that nobody claims what is suppressed (E4).
func (w *world) checkClaimable(r *row) {
	if w.main == nil {
		return
	}
	w.arose("E4")
	if r.ofReplay {
		w.broke("E4", "the intent %s is claimed, and is of a replay without effects", r.message.name())
	}
	if m, marked := w.store.markers[r.key.id]; r.reason == semel.ReasonSuppressed || marked && m.outcome == store.Parked {
		w.broke("E4", "the intent %s is claimed, and is suppressed or waits for a person", r.message.name())
	}
}
