package check

import (
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/sqlstore"
)

// maxParkedAge is how long a message may be parked before question 15 fails.
const maxParkedAge = 24 * time.Hour

func (s *Subject) checkRetention() Answer {
	keep := s.Consumer.Retention.Keep
	switch {
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps no ids", s.strategy())
	case s.Consumer.Retention.Off && keep > 0:
		return fail("remove off: true from retention", "%s by the policy, but the reaper is off: markers are kept forever, and the table grows", s.Consumer.Kept())
	case s.Store.Redis != nil:
		return pass("%s, each with its key", s.Consumer.Kept())
	case s.Facts == nil:
		return cannotKnow("", "%s by the policy; the retention of running processes is unknown, because store %s could not be read", s.Consumer.Kept(), s.Store.Name)
	}
	if r := s.Facts.Retention; r != nil && r.Keep != keep && !r.Progress.IsZero() {
		return fail("start the consumer with this policy, or correct retention", "%s by the policy, but its processes last recorded %s", s.Consumer.Kept(), span(r.Keep))
	}
	return pass("%s", s.Consumer.Kept())
}

// span formats a retention. 0 is formatted as "forever".
func span(d time.Duration) string {
	if d == 0 {
		return "forever"
	}
	return legible.Span(d)
}

func (s *Subject) checkHorizon() Answer {
	keep := s.Consumer.Retention.Keep
	if !s.Consumer.Strategy.Marks() {
		return notApplicable("strategy %s keeps no ids", s.strategy())
	}
	if keep == 0 {
		return pass("yes: ids are kept forever")
	}
	longer := "raise retention to at least that time, or lower the retention of the broker"
	if s.Source != nil && s.Source.Webhook != nil {
		return s.checkWebhookRetries(keep)
	}
	if b := s.Broker; b != nil && b.NoHorizon == "" {
		late := b.Horizon.Late + s.Consumer.Retention.Delay
		switch {
		case b.Horizon.Unlimited:
			return fail("write retention: forever, or have the broker remove records", "ids are kept for %s, but copies can arrive at any later time: %s", legible.Span(keep), b.Horizon.Why)
		case late > keep:
			return fail(longer, "ids are kept for %s, but a copy can arrive %s late: %s", legible.Span(keep), legible.Span(late), b.Horizon.Why)
		}
	}
	if s.Facts != nil && s.Facts.Retention != nil && s.Facts.Retention.Horizon > 0 {
		r := s.Facts.Retention
		if r.Horizon > keep {
			return fail(longer, "ids are kept for %s, but a copy can arrive %s late: %s", legible.Span(keep), legible.Span(r.Horizon), r.Why)
		}
		if s.Broker == nil || s.Broker.NoHorizon == "" {
			return s.fileOr(r.Why, keep)
		}
	}
	switch b := s.Broker; {
	case b != nil && b.NoHorizon != "":
		return cannotKnow("correct that, and check again", "the broker does not say how long it keeps records: %s", b.NoHorizon)
	case b != nil:
		return pass("ids are kept for %s, and a copy can arrive at most %s late", legible.Span(keep), legible.Span(b.Horizon.Late+s.Consumer.Retention.Delay))
	}
	return s.fileOr("", keep)
}

// checkWebhookRetries returns the answer to question 13 for webhooks. A provider repeats a request for a
// certain time, so copies of the request arrive within this time.
func (s *Subject) checkWebhookRetries(keep time.Duration) Answer {
	late := s.Source.Webhook.Repeats + s.Consumer.Retention.Delay
	if late > keep {
		return fail("raise retention to at least that time", "ids are kept for %s, but a copy can arrive %s late: the provider repeats for %s", legible.Span(keep), legible.Span(late), legible.Span(s.Source.Webhook.Repeats))
	}
	return pass("ids are kept for %s, and a copy can arrive at most %s late", legible.Span(keep), legible.Span(late))
}

// fileOr returns the answer to question 13 for sources other than Kafka. A file can be read again at any
// time, so the result for files is cannot_know.
func (s *Subject) fileOr(why string, keep time.Duration) Answer {
	if s.Source != nil && s.Source.Kafka == nil {
		return cannotKnow("write retention: forever, unless the file cannot be read again", "a file can be read again from its beginning at any time; messages with a time older than %s are then parked as too old", legible.Span(keep))
	}
	if why == "" {
		why = "intents come from the store, once each"
	}
	return pass("ids are kept for %s, and no copy can arrive later: %s", legible.Span(keep), why)
}

func (s *Subject) checkVersions() Answer {
	kind := s.kind()
	switch v := s.Consumer.Version; {
	case v != nil:
		return pass("versions take effect in order: an older version is discarded, and a version waits for its predecessor")
	case s.hasOnlyVersionedUpserts():
		return pass("a statement only replaces a row by a newer one")
	case s.Consumer.Strategy.Natural != nil && s.Consumer.Strategy.Natural.Order != "":
		return pass("the order is declared to be irrelevant")
	case kind == policy.Ledger || kind == policy.AuditCopy || kind == policy.Intent || kind == policy.External || kind == policy.Command:
		return pass("each message of %s is an effect of its own and overwrites no other", withArticle(kind))
	case kind == "":
		return cannotKnow("declare the kind: effect: {kind: …}", "whether a message overwrites what another has set is not declared")
	}
	return fail("write version: {stream: …, number: …}, or upsert with newer in the statement", "%s sets a state, and a late message overwrites a newer one", withArticle(kind))
}

// hasOnlyVersionedUpserts reports whether every statement is an upsert by version.
func (s *Subject) hasOnlyVersionedUpserts() bool {
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

func (s *Subject) checkInbox() Answer {
	receives := s.Consumer.Strategy.Inbox || s.Consumer.Strategy.Lease
	if receives && s.Consumer.Alerts.PendingAge == 0 && s.Store.Redis == nil {
		return fail("write alerts: {pending_age: 60s}", "messages wait in the store, and no maximum age is set")
	}
	if s.Store.Redis != nil {
		return pass("Redis has keys and no rows: messages wait at the broker")
	}
	var n sqlstore.Upkeep
	var oldest time.Duration
	if s.Facts != nil {
		n, oldest = s.Facts.Upkeep, s.Facts.Pending.Oldest
	}
	most := s.Consumer.Alerts.PendingAge
	switch {
	case n.Parked > 0 && n.Oldest > maxParkedAge:
		return fail(s.Policy.Command("messages", "summary"), "%s, the oldest for %s", formatRows(n.Parked, "is parked", "are parked"), legible.Span(n.Oldest.Round(time.Hour)))
	case most > 0 && oldest > most:
		return fail(s.Policy.Command("messages", "summary", "--by", "state"), "the oldest message has waited for %s, and pending_age is %s", oldest.Round(time.Second), legible.Span(most))
	case s.Policy.Unserved(s.Consumer):
		return fail("add listen: 127.0.0.1:9464 to the policy, and load the rules that semel generate alerts prints", "alerts are set, but runs serve no metrics: the policy has no key listen")
	case s.Facts == nil:
		return s.answerUnread()
	case n.Parked > 0:
		return pass("%s, none of them for longer than a day", formatRows(n.Parked, "is parked", "are parked"))
	case most > 0:
		return pass("nothing is parked, and no message has waited longer than pending_age, %s", legible.Span(most))
	}
	return pass("nothing is parked")
}

func (s *Subject) checkStaleClaims() Answer {
	switch {
	case s.Store.Redis != nil:
		return pass("another process can claim a key when its lease of %s has ended", legible.Span(s.Consumer.Inbox.Lease))
	case s.Facts == nil:
		return s.answerUnread()
	case s.Facts.Upkeep.Stale > 0:
		return fail("run the consumer; if it runs, read its log: semel messages ls --state running", "%s although the lease ended more than a minute ago", formatRows(s.Facts.Upkeep.Stale, "is claimed", "are claimed"))
	}
	return pass("a running process claims rows again when their lease of %s has ended; no claim is stale", legible.Span(s.Consumer.Inbox.Lease))
}

func (s *Subject) checkDuplicateAck() Answer {
	if s.Facts != nil && s.Facts.Upkeep.Repeated > 0 {
		return pass("yes: it counts as a success without an effect; copies were counted on %s", formatCount(s.Facts.Upkeep.Repeated, "row"))
	}
	return pass("yes: it counts as a success without an effect")
}
