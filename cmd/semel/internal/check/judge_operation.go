package check

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// maxCounted is the number at which the store stops counting rows.
const maxCounted = 10_000

// formatRows formats a number of rows and a verb. The parameters one and many are the singular and the
// plural of the verb.
func formatRows(n int64, one, many string) string {
	if n == 1 {
		return "1 row " + one
	}
	return formatCount(n, "row") + " " + many
}

func formatCount(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case n >= maxCounted:
		return fmt.Sprintf("at least %d %ss", maxCounted, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s *Subject) checkFingerprint() Answer {
	f := s.Consumer.Fingerprint
	switch {
	case s.Consumer.Sends():
		return pass("the whole intent is compared")
	case f.None && s.Consumer.Strategy.Marks():
		return fail("remove fingerprint: none, or name the fields that are the content", "no: no fingerprint is kept, so other content under a known id is taken for a copy")
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps no ids", s.strategy())
	case len(f.Selectors) > 0:
		return pass("yes: by %s", strings.Join(f.Selectors, ", "))
	}
	return pass("yes: by the body")
}

func (s *Subject) checkExpiry() Answer {
	h := s.endpoint()
	switch {
	case h == nil || h.Pure || h.NoKey:
		return pass("no call has a key")
	case h.Window == consumer.WindowAlways:
		return pass("the endpoint never forgets a key")
	case h.Window == consumer.WindowNever:
		return pass("the endpoint knows no keys: a call with an unknown outcome is not made again, and an operator decides")
	case s.Consumer.Retry.MaxDelay >= h.Window:
		return fail("have the other side keep keys for longer and raise window, or lower retry.max_delay", "the endpoint knows a key for %s, but the delay between attempts can be %s: the key would be forgotten, so the message is parked as outcome unknown instead", legible.Span(h.Window), legible.Span(s.Consumer.Retry.MaxDelay))
	}
	return pass("the endpoint knows a key for %s after the first call, and Semel makes no later call with it", legible.Span(h.Window))
}

func (s *Subject) checkRisks() Answer {
	if s.Facts != nil && s.Facts.Upkeep.Unknown > 0 {
		return fail("ask the other side, and record the outcome: semel messages resolve", "%s with an unknown outcome", formatRows(s.Facts.Upkeep.Unknown, "had a call", "had calls"))
	}
	var left []string
	c := s.Consumer
	for _, risk := range s.Policy.Risks(c) {
		left = append(left, risk.Says)
	}
	downstream := "none"
	if h := s.endpoint(); h != nil && !h.NoKey && !h.Pure {
		downstream = "an idempotency key with each call"
	} else if c.Handler.Kafka != nil || s.writesIntents() {
		downstream = "an id derived from the cause with each output"
	}
	if len(left) == 0 {
		return pass("downstream: %s; the policy accepts no risk", downstream)
	}
	return pass("downstream: %s; risks that the policy accepts: %s", downstream, legible.Printable(strings.Join(left, "; ")))
}

func (s *Subject) kafka() *policy.Kafka {
	if s.Source == nil {
		return nil
	}
	return s.Source.Kafka
}

func (s *Subject) checkOffsets() Answer {
	switch b := s.Broker; {
	case s.kafka() == nil && s.Source == nil:
		return pass("intents come from the store, so there is nothing to ack")
	case s.Source.Webhook != nil:
		return pass("a webhook is answered with 2xx after its row in the inbox is committed")
	case s.kafka() == nil:
		return pass("the position of a file is in the same database as the effects")
	case b == nil || b.NoPositions != "":
		why := "the broker was not read"
		if b != nil {
			why = b.NoPositions
		}
		return cannotKnow("correct that, and check again", "they are, but it is unknown whether the group is ahead of the store: %s", why)
	case b.Ahead > 0:
		return fail(s.Policy.Command("consumers", "positions", "plan"), "in %d of %d partitions the group is ahead of the store, and the effects of up to %d records may be missing", b.Ahead, b.Partitions, b.Missing)
	}
	return pass("yes, and in none of %d partitions is the group ahead of the store", s.Broker.Partitions)
}

func (s *Subject) checkIsolation() Answer {
	switch k := s.kafka(); {
	case k == nil:
		return pass("its source has no transactions")
	case k.ReadUncommitted:
		return fail("remove isolation: read_uncommitted from the source", "no: records of aborted transactions are read too")
	}
	return pass("yes: read_committed")
}

func (s *Subject) checkReconciliation() Answer {
	return cannotKnow("run semel reconcile from cron: it exits with 4 if it finds differences", "a comparison leaves no record")
}

func (s *Subject) checkDuplicatesSeen() Answer {
	const count = "semel run counts them in its summary, and semel_duplicates_total over all runs"
	t := s.Consumer.Strategy
	switch {
	case !t.Marks():
		return cannotKnow("count them in the target of the effect", "strategy %s does not recognise copies", s.strategy())
	case s.Store.Redis != nil:
		return cannotKnow(count, "Redis does not count copies")
	case s.Facts == nil:
		return s.answerUnread()
	case s.Facts.Upkeep.Repeated > 0:
		return pass("yes: on %s of the latest %d a copy was counted", formatCount(s.Facts.Upkeep.Repeated, "row"), s.Facts.Upkeep.Latest)
	case !t.Inbox && !t.Lease:
		return cannotKnow(count, "markers do not count copies, and applied messages have no rows")
	}
	return cannotKnow("deliver a message twice: semel run --from-start reads a file again", "no copy was counted on its latest %s", formatCount(s.Facts.Upkeep.Latest, "row"))
}

func (s *Subject) checkLease() Answer {
	c := s.Consumer
	if h := s.endpoint(); c.Strategy.Lease && h != nil && h.Timeout >= c.Inbox.Lease {
		return fail("write inbox: {lease: …} longer than the call", "a call may take %s, but its lease is %s", legible.Span(h.Timeout), legible.Span(c.Inbox.Lease))
	}
	if s.Facts != nil && s.Facts.Upkeep.Killing > 0 {
		return fail("find the cause in the last log lines of those processes: "+s.Policy.Command("messages", "ls", "--reason", "kills its process"), "%s because the processes that ran them died", formatRows(s.Facts.Upkeep.Killing, "is parked", "are parked"))
	}
	receives := c.Strategy.Lease || c.Strategy.Inbox && c.AckOnReceipt
	switch {
	case !receives:
		return pass("a handler runs in the transaction of its marker, whose lock excludes other processes, for at most %s", legible.Span(c.Timeout))
	case c.Timeout > c.Inbox.Lease:
		return fail(fmt.Sprintf("write timeout: %s or less, or a longer inbox: {lease: …}", legible.Span(c.Inbox.Lease)), "a handler may run for %s, but after its lease of %s another process can claim the message if the lease is not extended", legible.Span(c.Timeout), legible.Span(c.Inbox.Lease))
	}
	return pass("a handler may run for %s, and its lease is %s; the longest real run is not recorded", legible.Span(c.Timeout), legible.Span(c.Inbox.Lease))
}
