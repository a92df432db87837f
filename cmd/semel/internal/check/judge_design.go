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

func (s *Subject) id() Answer {
	i := s.Consumer.Identity
	switch {
	case s.Consumer.Sends():
		return pass("that of the intent, which is made of the message that caused it, its purpose and its recipient")
	case len(i.ID) == 0 && s.Consumer.Strategy.Marks():
		return fail("name it: identity: {id: …}", "the policy names none")
	case len(i.ID) == 0:
		return pass("none: strategy %s needs no id", s.strategy())
	}
	headers, because := s.Policy.UnsignedIdentity(s.Consumer)
	const again = "%s, which nobody signed: whoever saw a signed body once can send it again under another id, and it takes effect again; the policy says: %s"
	switch {
	case len(headers) > 0 && !repeatable(s.kind()):
		return fail("name a field of the body, which is signed; or declare the effect, if a second one does no harm", again, strings.Join(headers, ", "), legible.Printable(because))
	case len(headers) > 0:
		return pass(again, strings.Join(headers, ", "), legible.Printable(because))
	case i.Source == "":
		return pass("%s, the same name of a source for all", strings.Join(i.ID, ", "))
	}
	return pass("%s, within the source that stands in %s", strings.Join(i.ID, ", "), i.Source)
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

func (s *Subject) stable() Answer {
	if s.Consumer.Sends() {
		return pass("ids of intents are made of their causes, the same in each attempt")
	}
	if !s.Consumer.Strategy.Marks() {
		return notApplicable("strategy %s recognises copies by what they do, and not by an id", s.strategy())
	}
	if s.Store.Redis != nil {
		return cannot("keep the identity of the policy as it is while keys are kept", "keys in Redis do not say how ids were found before")
	}
	if s.Facts == nil {
		return s.unread()
	}
	now, telling := derivation(s.Consumer)
	var live []string
	known := false
	for _, d := range s.Facts.Derivations {
		if !s.own(d.Consumer) || d.Retired {
			continue
		}
		known = known || d.Text == now
		live = append(live, d.Text)
	}
	switch {
	case !telling || len(live) == 0:
		return pass("it comes from the producer (%s): the policy refuses what redelivery or a replay changes", strings.Join(s.Consumer.Identity.ID, ", "))
	case !known && s.Consumer.Identity.Previous == nil:
		return fail("write the identity as it was, or name the former one: identity: {previous: …}", "processes found ids by %s until now, and the policy says another: what was applied would not be recognised", legible.Printable(live[len(live)-1]))
	}
	if former := len(live) - 1; former > 0 {
		return pass("it comes from the producer; the store knows %d former ways of finding it, one of which the policy names or nobody has retired: semel identity ls", former)
	}
	return pass("it comes from the producer, and is found as ever: the store knows no other way")
}

// derivation is how ids are found, as the store keeps it.
func derivation(c *policy.Consumer) (string, bool) {
	tells, is := c.Config().Identity.(interface{ Derivation() string })
	if !is || len(tells.Derivation()) > admin.MaxDerivation {
		return "", false
	}
	return tells.Derivation(), true
}

func (s *Subject) scoped() Answer {
	switch {
	case s.Facts == nil:
		return s.unread()
	case s.Facts.Owner != "" && s.Consumer.Config().Owner != "" && s.Facts.Owner != s.Consumer.Config().Owner:
		return fail("give one of the two another name; if the handlers were changed on purpose, start the consumer once", "its name is owned by %s, and the policy has others: of two services under one name each loses what the other takes", legible.Printable(s.Facts.Owner))
	case slices.ContainsFunc(s.Facts.Names, s.own):
		return pass("its records stand under its own name, %s", legible.Printable(s.Consumer.Name))
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps no markers that another could meet", s.strategy())
	}
	now, _ := derivation(s.Consumer)
	for _, d := range s.Facts.Derivations {
		if public, _ := admin.GenerationOf(d.Consumer); d.Text == now && s.Policy.Consumer(public) == nil {
			return fail("give it its name back, or, if this is another consumer, remove the records of that one", "the store knows no consumer of this name, and knows %s, which the policy lacks and which finds ids in the same way: if it was renamed, all that it applied will be applied again", legible.Printable(public))
		}
	}
	return pass("its records will stand under its own name; it has met no message yet")
}

// own reports whether records under a name are the consumer's.
func (s *Subject) own(name string) bool {
	public, _ := admin.GenerationOf(name)
	return public == s.Consumer.Name
}

func untested(what string) func(*Subject) Answer {
	return func(*Subject) Answer {
		return cannot("test it with the policy's own handlers; examples are in docs/guides/adoption.md", "no test of %s has written its result into the store, and this release has no command that does", what)
	}
}

func (s *Subject) effect() Answer {
	e := s.Consumer.Effect
	if e == nil {
		return fail(`declare it: effect: {kind: …, says: "what a second one would do"}`, "the policy does not say of which kind it is")
	}
	return pass("%s: %s", e.Kind, legible.Printable(e.Says))
}

func (s *Subject) natural() Answer {
	natural, kind := s.Consumer.Strategy.Natural, s.kind()
	switch {
	case natural != nil && kind == "":
		return fail(`declare the kind, which is judged against that: effect: {kind: …, says: "…"}`, "the strategy says that late copies do no harm, and no kind of effect says so")
	case natural != nil && natural.Because != "":
		return pass("yes: %s, and %s", a(kind), legible.Printable(natural.Because))
	case natural != nil:
		return pass("yes: %s, whose order is irrelevant", a(kind))
	case kind == "":
		return cannot("declare the kind: effect: {kind: …}", "the policy does not say of which kind it is; strategy %s guards it in any case", s.strategy())
	case repeatable(kind) || kind == policy.Entity:
		return pass("%s can be made twice as far as it sets its state; strategy %s guards it", a(kind), s.strategy())
	}
	return pass("no: %s is not, and strategy %s guards it", a(kind), s.strategy())
}

func (s *Subject) together() Answer {
	t := s.Consumer.Strategy
	switch {
	case s.Store.Redis != nil:
		return pass("there is no commit to share: the effect is a call, and its key is claimed before and ended after it")
	case s.Schema != "":
		return fail("semel migrate up --config "+s.Policy.File, "the tables are not what they must be: %s", s.Schema)
	case s.Facts == nil:
		return cannot("mend that, and ask again", "%s", s.NoFacts)
	case s.Facts.Deep != nil && len(s.Facts.Deep.Denied) > 0:
		return s.denied()
	case s.Facts.Unique != nil && !*s.Facts.Unique:
		return fail("create it, or correct its name", "there is no unique constraint %s, which is to decide", t.BusinessKey.Constraint)
	case t.Natural != nil:
		return pass("none is written: late copies do no harm")
	case t.BusinessKey != nil && !t.Marker:
		return pass("the constraint %s is met by the effect itself", t.BusinessKey.Constraint)
	case s.outside():
		return pass("the effect is a call, in no commit: its start is committed before it, and its end after it")
	}
	deep := ""
	if d := s.Facts.Deep; d != nil {
		if d.Rest != "" {
			return cannot(s.Command(), "of %s, and those behind row %d were not looked at: %s", d.compared(), d.To, d.Rest)
		}
		deep = "; of " + d.compared()
	}
	return pass("yes: strategy %s writes both in one transaction of store %s%s", s.strategy(), s.Store.Name, deep)
}

func (s *Subject) deduplicated() Answer {
	h := s.calls()
	switch {
	case h == nil && s.Consumer.Handler.Kafka != nil:
		return pass("what is published carries an id made of its cause, by which consumers recognise copies")
	case h != nil && h.Pure:
		return pass("the endpoint changes nothing: what it answers is applied with the marker")
	case h == nil && s.orders():
		return pass("what is to be done outside is written down as intents, in the marker's transaction, and sent by others")
	case h == nil:
		return pass("there are none that Semel is told of: its statements are in the marker's transaction")
	case h.NoKey && h.MayDouble != "":
		return fail("have the other side take a key, and remove key: none", "calls carry no key, and one whose answer is lost is made again: %s", legible.Printable(h.MayDouble))
	case h.NoKey:
		return fail("have the other side take a key, and remove key: none", "calls carry no key, and one whose answer is lost is not made again, so that it may be missing: %s", legible.Printable(h.MayBeLost))
	}
	return pass("each call carries a key, and is made under a claim by one process at a time")
}

func (s *Subject) key() Answer {
	h := s.calls()
	switch {
	case h == nil || h.Pure:
		return pass("no provider is called that would need one")
	case h.NoKey:
		return fail("remove key: none", "none is sent")
	}
	return pass("it is made of consumer, source, id and step: the same in each attempt, copy and replay")
}

func (s *Subject) replay() Answer {
	r := s.Consumer.Replay
	kind := s.kind()
	switch {
	case !r.Allowed:
		return pass("no")
	case r.Effects && (s.outside() || s.orders()):
		return fail("write replay: {effects: none}, or allowed: false", "yes, and a replay makes the effects outside again: %s", s.describe())
	case kind == "":
		return fail(`declare the kind: effect: {kind: …, says: "…"}`, "yes, and the policy does not say what a second effect would do")
	case !repeatable(kind):
		return pass("yes, of %s, whose markers keep it from taking effect again for as long as ids are kept: %s", a(kind), s.describe())
	}
	return pass("yes: %s makes the same anew", a(kind))
}

func (s *Subject) describe() string {
	if s.Consumer.Effect == nil {
		return "what that does is not declared"
	}
	return legible.Printable(s.Consumer.Effect.Says)
}

func (s *Subject) letters() Answer {
	switch {
	case s.Consumer.Strategy.Marks() && s.Store.Redis == nil:
		return pass("yes: what is set aside is a row with its identity, under which it is replayed")
	case s.Consumer.DeadLetter != nil:
		return pass("yes: a letter has the headers, key and body of its message, in which the id stands")
	}
	return notApplicable("there are no dead letters: what fails for good %s", ending(s.Consumer.Retry.OnExhausted))
}

func ending(t consumer.Action) string {
	if t == consumer.ActionHalt {
		return "halts the consumer"
	}
	return fmt.Sprintf("ends with %v", t)
}
