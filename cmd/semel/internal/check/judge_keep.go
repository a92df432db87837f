package check

import (
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/sqlstore"
)

// unwatched is for how long something may be parked before it counts as seen by nobody.
const unwatched = 24 * time.Hour

func (s *Subject) kept() Answer {
	keep := s.Consumer.Retention.Keep
	switch {
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps none", s.strategy())
	case s.Consumer.Retention.Off && keep > 0:
		return fail("remove off: true from retention", "%s by the policy, which switches the reaper off: they are kept for ever, and grow", s.Consumer.Kept())
	case s.Store.Redis != nil:
		return pass("%s, each with its key", s.Consumer.Kept())
	case s.Facts == nil:
		return cannot("", "%s by the policy; whether running processes say the same is not known, as store %s could not be read", s.Consumer.Kept(), s.Store.Name)
	}
	if r := s.Facts.Retention; r != nil && r.Keep != keep && !r.Progress.IsZero() {
		return fail("start the consumer with this policy, or correct retention", "%s by the policy, and %s by what its processes recorded last", s.Consumer.Kept(), span(r.Keep))
	}
	return pass("%s", s.Consumer.Kept())
}

// span is a time, or for ever.
func span(d time.Duration) string {
	if d == 0 {
		return "for ever"
	}
	return legible.Span(d)
}

func (s *Subject) horizon() Answer {
	keep := s.Consumer.Retention.Keep
	if !s.Consumer.Strategy.Marks() {
		return notApplicable("strategy %s keeps no ids", s.strategy())
	}
	if keep == 0 {
		return pass("whatever it is: what is kept is kept for ever")
	}
	longer := "write a retention of at least as much, or have the broker keep its records for less"
	if s.Source != nil && s.Source.Webhook != nil {
		return s.repeated(keep)
	}
	if b := s.Broker; b != nil && b.NoHorizon == "" {
		late := b.Horizon.Late + s.Consumer.Retention.Delay
		switch {
		case b.Horizon.Unlimited:
			return fail("write retention: forever, or have the broker remove records", "ids are kept for %s, and copies can come without end: %s", legible.Span(keep), b.Horizon.Why)
		case late > keep:
			return fail(longer, "ids are kept for %s, and a copy can come %s late: %s", legible.Span(keep), legible.Span(late), b.Horizon.Why)
		}
	}
	if s.Facts != nil && s.Facts.Retention != nil && s.Facts.Retention.Horizon > 0 {
		r := s.Facts.Retention
		if r.Horizon > keep {
			return fail(longer, "ids are kept for %s, and a copy can come %s late: %s", legible.Span(keep), legible.Span(r.Horizon), r.Why)
		}
		if s.Broker == nil || s.Broker.NoHorizon == "" {
			return s.fileOr(r.Why, keep)
		}
	}
	switch b := s.Broker; {
	case b != nil && b.NoHorizon != "":
		return cannot("mend that, and ask again", "the broker does not say how long it keeps records: %s", b.NoHorizon)
	case b != nil:
		return pass("ids are kept for %s, and a copy can come at most %s late", legible.Span(keep), legible.Span(b.Horizon.Late+s.Consumer.Retention.Delay))
	}
	return s.fileOr("", keep)
}

// repeated is the answer of webhooks, which come again as long as their provider repeats them.
func (s *Subject) repeated(keep time.Duration) Answer {
	late := s.Source.Webhook.Repeats + s.Consumer.Retention.Delay
	if late > keep {
		return fail("write a retention of at least as much", "ids are kept for %s, and a copy can come %s late: the provider repeats for %s", legible.Span(keep), legible.Span(late), legible.Span(s.Source.Webhook.Repeats))
	}
	return pass("ids are kept for %s, and a copy can come at most %s late", legible.Span(keep), legible.Span(late))
}

// fileOr passes, but of a source that can be read from its beginning at any time.
func (s *Subject) fileOr(why string, keep time.Duration) Answer {
	if s.Source != nil && s.Source.Kafka == nil {
		return cannot("write retention: forever while the file can be read again, or nothing is left of it", "a file is there for as long as nobody removes it, and can be read again from its beginning; messages with a time that are older than %s are parked as too old then", legible.Span(keep))
	}
	if why == "" {
		why = "intents come from the store, and once"
	}
	return pass("ids are kept for %s, and no copy can come later: %s", legible.Span(keep), why)
}

func (s *Subject) versions() Answer {
	kind := s.kind()
	switch v := s.Consumer.Version; {
	case v != nil:
		return pass("versions take effect in their order: an old one is discarded, and one whose predecessor is missing waits")
	case s.newer():
		return pass("a statement replaces a row by a newer one only")
	case s.Consumer.Strategy.Natural != nil && s.Consumer.Strategy.Natural.Order != "":
		return pass("the order is declared to be irrelevant")
	case kind == policy.Ledger || kind == policy.AuditCopy || kind == policy.Intent || kind == policy.External || kind == policy.Command:
		return pass("each message of %s is an effect of its own: none overwrites another", a(kind))
	case kind == "":
		return cannot("declare the kind: effect: {kind: …}", "whether a message overwrites what another has set is not declared")
	}
	return fail("write version: {stream: …, number: …}, or upsert with newer in the statement", "%s sets a state, and a message that comes late overwrites a newer one", a(kind))
}

// newer reports whether all statements replace rows by newer ones only.
func (s *Subject) newer() bool {
	any := false
	for _, h := range s.Consumer.Handlers() {
		for _, statement := range h.Statements {
			if statement.Upsert == nil {
				return false
			}
			any = true
		}
	}
	return any
}

func (s *Subject) watched() Answer {
	receives := s.Consumer.Strategy.Inbox || s.Consumer.Strategy.Lease
	if receives && s.Consumer.Alerts.PendingAge == 0 && s.Store.Redis == nil {
		return fail("write alerts: {pending_age: 60s}", "messages wait in the store, and nothing says how old one may become")
	}
	if s.Store.Redis != nil {
		return pass("Redis keeps keys and no rows: what waits, waits at the broker")
	}
	var n sqlstore.Upkeep
	var oldest time.Duration
	if s.Facts != nil {
		n, oldest = s.Facts.Upkeep, s.Facts.Pending.Oldest
	}
	most := s.Consumer.Alerts.PendingAge
	switch {
	case n.Parked > 0 && n.Oldest > unwatched:
		return fail("semel messages summary --config "+s.Policy.File, "%s, the first for %s, and nobody has acted", rows(n.Parked, "is parked", "are parked"), legible.Span(n.Oldest.Round(time.Hour)))
	case most > 0 && oldest > most:
		return fail("semel messages summary --by state --config "+s.Policy.File, "the oldest message has waited for %s, and pending_age is %s", oldest.Round(time.Second), legible.Span(most))
	case s.Policy.Unserved(s.Consumer):
		return fail("add listen: 127.0.0.1:9464 to the policy, and load the rules that semel generate alerts prints", "alerts are set, and a run serves no metrics for them: the policy has no key listen")
	case s.Facts == nil:
		return s.unread()
	case n.Parked > 0:
		return pass("%s, none of them for longer than a day", rows(n.Parked, "is parked", "are parked"))
	case most > 0:
		return pass("nothing is parked, and nothing has waited for longer than pending_age, %s", legible.Span(most))
	}
	return pass("nothing is parked")
}

func (s *Subject) recovered() Answer {
	switch {
	case s.Store.Redis != nil:
		return pass("a key is the next one's when its lease of %s has ended", legible.Span(s.Consumer.Inbox.Lease))
	case s.Facts == nil:
		return s.unread()
	case s.Facts.Upkeep.Stale > 0:
		return fail("run the consumer, or, where it runs, read its log: semel messages ls --state running", "%s of which the lease ended more than a minute ago, and nobody takes them", rows(s.Facts.Upkeep.Stale, "is claimed", "are claimed"))
	}
	return pass("whoever runs the consumer takes what was claimed when the lease of %s has ended; none is stale", legible.Span(s.Consumer.Inbox.Lease))
}

func (s *Subject) settled() Answer {
	if s.Facts != nil && s.Facts.Upkeep.Repeated > 0 {
		return pass("yes: it is a success without an effect; copies were counted on %s", counted(s.Facts.Upkeep.Repeated, "row"))
	}
	return pass("yes: it is a success without an effect")
}
