package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// cause is what the checker knows an intent by: the message, its step, and which of its
// intents it is.
type cause struct {
	id, step, recipient string
	print               semel.Fingerprint
}

func intentCause(n *model.Intent) cause {
	return cause{n.Of.ID, n.Step, string(n.Message.Key), n.Of.Print}
}

// clashes: the message's intents are there with another content, so that it may fail for
// good.
func (w *world) clashes(m *model.Message) {
	w.arose("E2")
	if !w.hasOtherContent(m) {
		w.broke("E2", "%s writes the intents that it wrote before, and they are said to have another content", m.Name())
	}
	m.Harmless, m.Clashed = false, true
}

// wroteIntent checks that who writes an intent again gives it the id that it had: of an
// attempt, a copy, or another life (E2).
func (w *world) wroteIntent(n model.Intent) {
	w.arose("E2")
	of := intentCause(&n)
	of.print = semel.Fingerprint{} // the id is of the message's identity
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

// saysTheSame checks that an intent that is said to be there says what this one does (E1).
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

// judgedIntents checks that a handler goes on only where all its intents are there (E1).
func (w *world) judgedIntents(m *model.Message, verdicts []store.Verdict, err error) {
	for _, v := range verdicts {
		if err == nil && v.Kind != store.Fresh && v.Kind != store.Seen {
			w.broke("E1", "%s goes on, and an intent of its is not written: %s", m.Name(), v.String())
		}
	}
}

// checkIntent checks an intent that is now in the inbox: its message has taken effect with
// the same commit (E1).
func (w *world) checkIntent(n model.Intent) {
	w.arose("E1")
	if w.tookEffect(n.Of, n.Step) == 0 {
		w.broke("E1", "an intent of %s is committed, and %s has no effect", n.Of.Name(), n.Of.ID)
	}
}

// tookEffect is how often a message, or a step of it, took effect.
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

// checkIntents holds what took effect against the sender's inbox, when all is over (E1).
func (w *world) checkIntents() {
	if w.sender == nil {
		return
	}
	there := map[cause]*model.Row{}
	for _, r := range w.sender.store.Inbox {
		m := r.Message
		of := cause{id: m.Of.ID, step: m.OfStep, recipient: string(m.Intent.Key)}
		if there[of] != nil {
			w.broke("E2", "%s has two intents for %s", m.Of.Name(), of.recipient)
		}
		there[of] = r
		w.checkSent(r)
	}
	for _, m := range w.messages {
		for _, step := range w.stepsOf(m) {
			if w.past[m.ID] || w.tookEffect(m, step) == 0 {
				continue
			}
			for _, n := range w.intentsOf(m, step) {
				if there[cause{id: m.ID, step: step, recipient: n.Recipient}] == nil {
					w.broke("E1", "%s took effect, and its intent for %s is not there", m.Name(), n.Recipient)
				}
			}
		}
	}
}

// stepsOf are the steps of a message that took effect, "" for one that has none.
func (w *world) stepsOf(m *model.Message) []string {
	if done := w.store.StepsDone[m.ID]; len(done) > 0 {
		return done
	}
	return []string{""}
}

// checkSent checks that an intent is sent, or waits for a person, when all is over (E2).
func (w *world) checkSent(r *model.Row) {
	charged := w.sender.provider.charged[r.Message.ID]
	switch {
	case r.Waits():
		w.broke("E2", "the intent %s waits, and nobody will send it", r.Message.Name())
	case r.As == machine.AsApplied && charged == 0:
		w.broke("E2", "the intent %s is done, and was not sent", r.Message.Name())
	case r.Reason == semel.ReasonSuppressed && r.Sends < charged:
		w.broke("E4", "the intent %s is suppressed, and was sent %d times", r.Message.Name(), charged)
	}
}

// checkClaimable checks that nobody claims what is suppressed (E4).
func (w *world) checkClaimable(r *model.Row) {
	if w.main == nil {
		return
	}
	w.arose("E4")
	if r.OfReplay {
		w.broke("E4", "the intent %s is claimed, and is of a replay without effects", r.Message.Name())
	}
	if m, marked := w.store.Markers[r.Key.ID]; r.Reason == semel.ReasonSuppressed || marked && m.Outcome == store.Parked {
		w.broke("E4", "the intent %s is claimed, and is suppressed or waits for a person", r.Message.Name())
	}
}
