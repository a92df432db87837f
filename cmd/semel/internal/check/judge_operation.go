package check

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// The constant "most" is the number at which the store stops counting rows.
const most = 10_000

// The function rows formats a number of rows and a verb. The parameters one and many are the singular and the
// plural of the verb.
func rows(n int64, one, many string) string {
	if n == 1 {
		return "1 row " + one
	}
	return counted(n, "row") + " " + many
}

func counted(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case n >= most:
		return fmt.Sprintf("at least %d %ss", most, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s *Subject) fingerprint() Answer {
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

func (s *Subject) expiry() Answer {
	h := s.calls()
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

func (s *Subject) risks() Answer {
	if s.Facts != nil && s.Facts.Upkeep.Unknown > 0 {
		return fail("ask the other side, and record the outcome: semel messages resolve", "%s with an unknown outcome", rows(s.Facts.Upkeep.Unknown, "had a call", "had calls"))
	}
	var left []string
	c := s.Consumer
	for _, risk := range s.Policy.Risks(c) {
		left = append(left, risk.Says)
	}
	downstream := "none"
	if h := s.calls(); h != nil && !h.NoKey && !h.Pure {
		downstream = "an idempotency key with each call"
	} else if c.Handler.Kafka != nil || s.orders() {
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

func (s *Subject) offsets() Answer {
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
		return cannot("correct that, and check again", "they are, but it is unknown whether the group is ahead of the store: %s", why)
	case b.Ahead > 0:
		return fail(s.Policy.Command("consumers", "positions", "plan"), "in %d of %d partitions the group is ahead of the store, and the effects of up to %d records may be missing", b.Ahead, b.Partitions, b.Missing)
	}
	return pass("yes, and in none of %d partitions is the group ahead of the store", s.Broker.Partitions)
}

func (s *Subject) committed() Answer {
	switch k := s.kafka(); {
	case k == nil:
		return pass("its source has no transactions")
	case k.ReadUncommitted:
		return fail("remove isolation: read_uncommitted from the source", "no: records of aborted transactions are read too")
	}
	return pass("yes: read_committed")
}

func (s *Subject) reconciled() Answer {
	return cannot("run semel reconcile from cron: it exits with 4 if it finds differences", "a comparison leaves no record")
}

func (s *Subject) exercised() Answer {
	const count = "semel run counts them in its summary, and semel_duplicates_total over all runs"
	t := s.Consumer.Strategy
	switch {
	case !t.Marks():
		return cannot("count them in the target of the effect", "strategy %s does not recognise copies", s.strategy())
	case s.Store.Redis != nil:
		return cannot(count, "Redis does not count copies")
	case s.Facts == nil:
		return s.unread()
	case s.Facts.Upkeep.Repeated > 0:
		return pass("yes: on %s of the latest %d a copy was counted", counted(s.Facts.Upkeep.Repeated, "row"), s.Facts.Upkeep.Latest)
	case !t.Inbox && !t.Lease:
		return cannot(count, "markers do not count copies, and applied messages have no rows")
	}
	return cannot("deliver a message twice: semel run --from-start reads a file again", "no copy was counted on its latest %s", counted(s.Facts.Upkeep.Latest, "row"))
}

func (s *Subject) lease() Answer {
	c := s.Consumer
	if h := s.calls(); c.Strategy.Lease && h != nil && h.Timeout >= c.Inbox.Lease {
		return fail("write inbox: {lease: …} longer than the call", "a call may take %s, but its lease is %s", legible.Span(h.Timeout), legible.Span(c.Inbox.Lease))
	}
	if s.Facts != nil && s.Facts.Upkeep.Killing > 0 {
		return fail("find the cause in the last log lines of those processes: "+s.Policy.Command("messages", "ls", "--reason", "kills its process"), "%s because the processes that ran them died", rows(s.Facts.Upkeep.Killing, "is parked", "are parked"))
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
