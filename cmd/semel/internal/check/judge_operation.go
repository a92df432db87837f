package check

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// most is up to where rows are counted.
const most = 10_000

// rows counts rows, with what they do.
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
		return pass("the whole intent is recognised")
	case f.None && s.Consumer.Strategy.Marks():
		return fail("remove fingerprint: none, or name what of a message is its content", "no: none is kept, and a second content under one id is taken for a copy")
	case !s.Consumer.Strategy.Marks():
		return pass("strategy %s keeps no ids under which another content could come", s.strategy())
	case len(f.Selectors) > 0:
		return pass("yes: by %s", strings.Join(f.Selectors, ", "))
	}
	return pass("yes: by the body")
}

func (s *Subject) expiry() Answer {
	h := s.calls()
	switch {
	case h == nil || h.Pure || h.NoKey:
		return pass("no key is given to another side")
	case h.Window == consumer.WindowAlways:
		return pass("the endpoint never forgets a key")
	case h.Window == consumer.WindowNever:
		return pass("the endpoint knows no keys: of a call whose outcome is unknown none is made again, and a person is asked")
	case s.Consumer.Retry.MaxDelay >= h.Window:
		return fail("have the other side keep keys for longer and say so in window, or write a lower retry.max_delay", "the endpoint knows a key for %s, and a try can be %s after the one before: it would find the key forgotten, and is parked as outcome unknown instead", legible.Span(h.Window), legible.Span(s.Consumer.Retry.MaxDelay))
	}
	return pass("the endpoint knows a key for %s from the first call, and after that no call is made blindly", legible.Span(h.Window))
}

func (s *Subject) risks() Answer {
	if s.Facts != nil && s.Facts.Upkeep.Unknown > 0 {
		return fail("ask the other side, and record what is so: semel messages resolve", "%s of which nobody knows what became", rows(s.Facts.Upkeep.Unknown, "had a call", "had calls"))
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
		downstream = "an id made of its cause with each output"
	}
	if len(left) == 0 {
		return pass("downstream: %s; the policy takes no risk upon itself", downstream)
	}
	return pass("downstream: %s; taken by the policy: %s", downstream, legible.Printable(strings.Join(left, "; ")))
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
		return pass("intents come from the store: there is nothing to settle")
	case s.Source.Webhook != nil:
		return pass("a webhook is answered with 2xx behind the commit of its row in the inbox")
	case s.kafka() == nil:
		return pass("the position of a file is in the database of the effects")
	case b == nil || b.NoPositions != "":
		why := "it was not asked"
		if b != nil {
			why = b.NoPositions
		}
		return cannot("mend that, and ask again", "they are, but whether the group is ahead of the store is not known: %s", why)
	case b.Ahead > 0:
		return fail("semel consumers positions plan --config "+s.Policy.File, "in %d of %d partitions the group is ahead of the store, and the effects of up to %d records may be missing", b.Ahead, b.Partitions, b.Missing)
	}
	return pass("yes, and in %d partitions the group is nowhere ahead of the store", s.Broker.Partitions)
}

func (s *Subject) committed() Answer {
	switch k := s.kafka(); {
	case k == nil:
		return pass("its source has no transactions")
	case k.ReadUncommitted:
		return fail("remove isolation: read_uncommitted from the source", "no: records of transactions that were aborted are read as well")
	}
	return pass("yes: read_committed")
}

func (s *Subject) reconciled() Answer {
	return cannot("run semel reconcile from cron: it exits with 4 where it finds something", "a comparison writes nothing down that could be read here")
}

func (s *Subject) exercised() Answer {
	const count = "semel run counts them in its summary, and semel_duplicates_total over all runs"
	t := s.Consumer.Strategy
	switch {
	case !t.Marks():
		return cannot("count them where the effect is", "strategy %s recognises no copies, and counts none", s.strategy())
	case s.Store.Redis != nil:
		return cannot(count, "keys in Redis count no copies")
	case s.Facts == nil:
		return s.unread()
	case s.Facts.Upkeep.Repeated > 0:
		return pass("yes: on %s of the latest %d a copy was counted", counted(s.Facts.Upkeep.Repeated, "row"), s.Facts.Upkeep.Latest)
	case !t.Inbox && !t.Lease:
		return cannot(count, "markers count no copies, and of what was applied there is no row that could")
	}
	return cannot("deliver a message twice: semel run --from-start reads a file again", "no copy was counted on its latest %s", counted(s.Facts.Upkeep.Latest, "row"))
}

func (s *Subject) lease() Answer {
	c := s.Consumer
	if h := s.calls(); c.Strategy.Lease && h != nil && h.Timeout >= c.Inbox.Lease {
		return fail("write inbox: {lease: …} longer than the call", "a call may take %s, and its lease is %s", legible.Span(h.Timeout), legible.Span(c.Inbox.Lease))
	}
	if s.Facts != nil && s.Facts.Upkeep.Killing > 0 {
		return fail("find what they do in the last logs of those processes: semel messages ls --reason 'kills its process'", "%s since processes that began them never came to an end", rows(s.Facts.Upkeep.Killing, "is parked", "are parked"))
	}
	receives := c.Strategy.Lease || c.Strategy.Inbox && c.AckOnReceipt
	switch {
	case !receives:
		return pass("a handler runs in the transaction of its marker, which no other can pass, for %s at most", legible.Span(c.Timeout))
	case c.Timeout > c.Inbox.Lease:
		return fail(fmt.Sprintf("write timeout: %s at most, or a longer inbox: {lease: …}", legible.Span(c.Inbox.Lease)), "a handler may run for %s, and its lease of %s is another process's where nobody can extend it", legible.Span(c.Timeout), legible.Span(c.Inbox.Lease))
	}
	return pass("a handler may run for %s, and its lease is %s; how long the longest has run nobody writes down", legible.Span(c.Timeout), legible.Span(c.Inbox.Lease))
}
