package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
)

func (s *Subject) checkID() Answer {
	i := s.Consumer.Identity
	switch {
	case s.Consumer.Sends():
		return pass("the id of the intent, derived from the message that caused it, its purpose and its recipient")
	case len(i.ID) == 0 && s.Consumer.Strategy.Marks():
		return fail("name it: identity: {id: …}", "the policy names no id")
	case len(i.ID) == 0:
		return pass("none: strategy %s needs no id", s.strategy())
	}
	headers, because := s.Policy.UnsignedIdentity(s.Consumer)
	const again = "%s, which is not signed: an attacker who has seen a signed body can send it with another id, and it takes effect again; the policy says: %s"
	switch {
	case len(headers) > 0 && !repeatable(s.kind()):
		return fail("name a field of the body, which is signed; or declare the effect if a second one is harmless", again, strings.Join(headers, ", "), legible.Printable(because))
	case len(headers) > 0:
		return pass(again, strings.Join(headers, ", "), legible.Printable(because))
	case i.Source == "":
		return pass("%s, with one constant source", strings.Join(i.ID, ", "))
	}
	return pass("%s, together with the source from %s", strings.Join(i.ID, ", "), i.Source)
}

func (s *Subject) strategy() string {
	switch t := s.Consumer.Strategy; {
	case t.Lease:
		return "lease"
	case t.Inbox:
		return "inbox"
	case t.Natural != nil:
		return "natural"
	case t.BusinessKey != nil && !t.Marker:
		return "business_key"
	}
	return "marker"
}

func (s *Subject) checkIDStability() Answer {
	if s.Consumer.Sends() {
		return pass("ids of intents are derived from their causes, and are the same in each attempt")
	}
	if !s.Consumer.Strategy.Marks() {
		return notApplicable("strategy %s recognises copies by their effect, not by an id", s.strategy())
	}
	if s.Store.Redis != nil {
		return cannotKnow("do not change identity in the policy while keys exist", "Redis does not record how ids were found")
	}
	if s.Facts == nil {
		return s.answerUnread()
	}
	now, telling := derivation(s.Consumer)
	var live []string
	known := false
	for _, d := range s.Facts.Derivations {
		if !s.ownsName(d.Consumer) || d.Retired {
			continue
		}
		known = known || d.Text == now
		live = append(live, d.Text)
	}
	switch {
	case !telling || len(live) == 0:
		return pass("it comes from the producer (%s): the policy rejects fields that change with redelivery or replay", strings.Join(s.Consumer.Identity.ID, ", "))
	case !known && s.Consumer.Identity.Previous == nil:
		return fail("restore the identity, or name the previous one: identity: {previous: …}", "processes have found ids by %s, and the policy has another identity: applied messages would not be recognised", legible.Printable(live[len(live)-1]))
	}
	if former := len(live) - 1; former > 0 {
		return pass("it comes from the producer; the store has %d previous identities that are named in the policy or not retired: semel consumers identity ls", former)
	}
	return pass("it comes from the producer; the store has no previous identity")
}

// derivation returns the text with which the store records how the consumer finds ids. The method returns
// false if the store records no text.
func derivation(c *policy.Consumer) (string, bool) {
	tells, is := c.Config().Identity.(interface{ Derivation() string })
	if !is || len(tells.Derivation()) > admin.MaxDerivation {
		return "", false
	}
	return tells.Derivation(), true
}

func (s *Subject) checkScope() Answer {
	switch {
	case s.Facts == nil:
		return s.answerUnread()
	case s.Facts.Owner != "" && s.Consumer.Config().Owner != "" && s.Facts.Owner != s.Consumer.Config().Owner && !admin.Grown(s.Facts.Owner, s.Consumer.Config().Owner):
		return fail("rename one of the two consumers; if the handlers were changed on purpose, start the consumer once", "its name is owned by %s, and the policy has other handlers: if two services share a name, each misses the messages that the other takes", legible.Printable(s.Facts.Owner))
	case slices.ContainsFunc(s.Facts.Names, s.ownsName):
		return pass("its records have its own name, %s", legible.Printable(s.Consumer.Name))
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps no markers that another consumer could match", s.strategy())
	}
	now, _ := derivation(s.Consumer)
	for _, d := range s.Facts.Derivations {
		if public, _ := admin.GenerationOf(d.Consumer); d.Text == now && s.Policy.Consumer(public) == nil {
			return fail("restore the name; or, if this is another consumer, remove the records of the old one", "the store does not know this consumer, but knows %s, which the policy lacks and which has the same identity: if the consumer was renamed, all applied messages will be applied again", legible.Printable(public))
		}
	}
	return pass("its records will have its own name; it has processed no message yet")
}

// ownsName reports whether records with this stored name belong to the consumer.
func (s *Subject) ownsName(name string) bool {
	public, _ := admin.GenerationOf(name)
	return public == s.Consumer.Name
}

func (s *Subject) checkEffect() Answer {
	e := s.Consumer.Effect
	if e == nil {
		return fail(`declare it: effect: {kind: …, says: "what a second one would do"}`, "the policy does not declare its kind")
	}
	return pass("%s: %s", e.Kind, legible.Printable(e.Says))
}

func (s *Subject) checkIdempotency() Answer {
	natural, kind := s.Consumer.Strategy.Natural, s.kind()
	switch {
	case natural != nil && kind == "":
		return fail(`declare the kind, so that the policy check can verify it: effect: {kind: …, says: "…"}`, "the strategy claims that late copies are harmless, but no kind of effect is declared")
	case natural != nil && natural.Because != "":
		return pass("yes: %s, and %s", withArticle(kind), legible.Printable(natural.Because))
	case natural != nil:
		return pass("yes: %s, whose order is irrelevant", withArticle(kind))
	case kind == "":
		return cannotKnow("declare the kind: effect: {kind: …}", "the policy does not declare its kind; strategy %s protects it in any case", s.strategy())
	case repeatable(kind) || kind == policy.Entity:
		return pass("%s may happen twice if it only sets state; strategy %s protects it", withArticle(kind), s.strategy())
	}
	return pass("no: %s is not, so strategy %s protects it", withArticle(kind), s.strategy())
}

func (s *Subject) checkAtomicity() Answer {
	t := s.Consumer.Strategy
	switch {
	case s.Store.Redis != nil:
		return pass("there is no common commit: the effect is a call, and its key is claimed before the call and completed after it")
	case s.Schema != "":
		return fail(s.Policy.Command("migrate", "up"), "the tables do not fit this release: %s", s.Schema)
	case s.Facts == nil:
		return cannotKnow("correct that, and check again", "%s", s.NoFacts)
	case s.Facts.Deep != nil && len(s.Facts.Deep.Denied) > 0:
		return s.checkMismatches()
	case s.Facts.Unique != nil && !*s.Facts.Unique:
		return fail("create the constraint, or correct its name", "the unique constraint %s of the business key does not exist", t.BusinessKey.Constraint)
	case t.Natural != nil:
		return pass("no marker is written, because late copies are harmless")
	case t.BusinessKey != nil && !t.Marker:
		return pass("the effect itself violates the constraint %s if it happens twice", t.BusinessKey.Constraint)
	case s.hasOutsideEffects():
		return pass("the effect is a call outside any commit: its start is committed before the call, and its end after it")
	}
	deep := ""
	if d := s.Facts.Deep; d != nil {
		if d.Rest != "" {
			return cannotKnow(s.Command(), "%s, but rows after row %d were not compared: %s", d.comparison(), d.To, d.Rest)
		}
		deep = "; " + d.comparison()
	}
	return pass("yes: strategy %s writes both in one transaction of store %s%s", s.strategy(), s.Store.Name, deep)
}

func (s *Subject) checkOutsideEffects() Answer {
	h := s.endpoint()
	switch {
	case h == nil && s.Consumer.Handler.Kafka != nil:
		return pass("published records have an id derived from their cause, by which consumers recognise copies")
	case h != nil && h.Pure:
		return pass("the endpoint changes nothing: its response is applied in the marker's transaction")
	case h == nil && s.writesIntents():
		return pass("external effects are written as intents in the marker's transaction, and sent by other consumers")
	case h == nil:
		return pass("none is declared: the statements run in the marker's transaction")
	case h.NoKey && h.MayDouble != "":
		return fail("have the other side accept a key, and remove key: none", "calls have no key, and a call without an answer is made again: %s", legible.Printable(h.MayDouble))
	case h.NoKey:
		return fail("have the other side accept a key, and remove key: none", "calls have no key, and a call without an answer is not made again, so its effect may be missing: %s", legible.Printable(h.MayBeLost))
	}
	return pass("each call has a key, and a claim allows one process at a time to make it")
}

func (s *Subject) checkKey() Answer {
	h := s.endpoint()
	switch {
	case h == nil || h.Pure:
		return pass("no provider is called")
	case h.NoKey:
		return fail("remove key: none", "no key is sent")
	}
	return pass("it is derived from consumer, source, id and step, and is the same in each attempt, copy and replay")
}

func (s *Subject) checkReplay() Answer {
	r := s.Consumer.Replay
	kind := s.kind()
	switch {
	case !r.Allowed:
		return pass("no")
	case r.Effects && (s.hasOutsideEffects() || s.writesIntents()):
		return fail("write replay: {effects: none}, or allowed: false", "yes, and a replay repeats the external effects: %s", s.describe())
	case kind == "":
		return fail(`declare the kind: effect: {kind: …, says: "…"}`, "yes, and the policy does not say what a second effect would do")
	case !repeatable(kind):
		return pass("yes, for %s; markers prevent a second effect as long as ids are kept: %s", withArticle(kind), s.describe())
	}
	return pass("yes: %s only renews the same state", withArticle(kind))
}

func (s *Subject) describe() string {
	if s.Consumer.Effect == nil {
		return "its consequence is not declared"
	}
	return legible.Printable(s.Consumer.Effect.Says)
}

func (s *Subject) checkDeadLetters() Answer {
	switch {
	case s.Consumer.Strategy.Marks() && s.Store.Redis == nil:
		return pass("yes: a parked message is a row with its identity, and keeps it when it is replayed")
	case s.Consumer.DeadLetter != nil:
		return pass("yes: a dead letter has the headers, key and body of its message, which contain the id")
	}
	return notApplicable("there are no dead letters: a message that fails for good %s", describeAction(s.Consumer.Retry.OnExhausted))
}

func describeAction(t consumer.Action) string {
	if t == consumer.ActionHalt {
		return "halts the consumer"
	}
	return fmt.Sprintf("ends with %v", t)
}
