package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// The tables of the inbox.

func inboxKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "ack", def: "after_effect", doc: "When the broker is settled, with `strategy: inbox`: `after_effect`, or `after_receipt`, when the message stands in the store's inbox. Its backlog is the inbox's then, which the broker does not show: `alerts.pending_age` must say how old it may become."},
			choice[consumer.AckPoint]{options: []option[consumer.AckPoint]{
				{word: "after_effect", value: consumer.AckAfterEffect}, {word: "after_receipt", value: consumer.AckAfterReceipt}}},
			func(c *Consumer) *consumer.AckPoint { return &c.AckPoint }),
		group(meta{name: "inbox", doc: "How messages that wait in the store are worked on: received ones, and those whose wait is longer than `max_in_memory_wait`. Each process claims some for a time."},
			inboxShape(), func(c *Consumer) *consumer.InboxPolicy { return &c.Inbox }),
		group(meta{name: "alerts", doc: "What somebody wants to be told of. `semel alerts` makes rules for Prometheus of them; see [alerts](alerts.md)."},
			alertsShape(), func(c *Consumer) *Alerts { return &c.Alerts }),
	}
}

func inboxShape() object[consumer.InboxPolicy] {
	return object[consumer.InboxPolicy]{fields: []field[consumer.InboxPolicy]{
		key(meta{name: "lease", def: legible.Span(consumer.DefaultLease), doc: "How long a claim lasts that nobody extends, by the store's clock. As long as that a message waits whose process died. A handler that runs longer has its claim extended up to `timeout`."},
			span{least: time.Second, most: time.Hour}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Lease }),
		key(meta{name: "poll", def: legible.Span(consumer.DefaultPoll), doc: "How long a consumer with nothing to do waits at most before it asks the store for what is due."},
			span{least: 10 * time.Millisecond, most: time.Minute}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Poll }),
		key(meta{name: "max_crashes", def: fmt.Sprint(consumer.DefaultMaxCrashes), doc: "How often a message may be begun by processes that die of it, or of something else. Then it is parked as `kills its process`."},
			count{least: 1, most: 100}, func(i *consumer.InboxPolicy) *int { return &i.MaxCrashes }),
	}}
}

// Alerts are what somebody wants to be told of a consumer, where it is not what the rules that
// ship say.
type Alerts struct {
	// PendingAge is how old a message that waits may become; 0: nothing is said.
	PendingAge time.Duration
	// Parked is from how many parked messages on; 0: nothing is said.
	Parked int
	// DuplicateSpike is whether most of what is delivered may be copies.
	DuplicateSpike bool
}

// Any reports whether anything is said.
func (a Alerts) Any() bool { return a != Alerts{} }

// Unserved reports whether alerts of a consumer are promised and no run serves the metrics
// that they need.
func (p *Policy) Unserved(c *Consumer) bool { return c.Alerts.Any() && p.Listen.Address == "" }

func alertsShape() object[Alerts] {
	return object[Alerts]{fields: []field[Alerts]{
		key(meta{name: "pending_age", doc: "How old the oldest message that waits in the inbox may be."},
			span{least: time.Second, most: 365 * day}, func(a *Alerts) *time.Duration { return &a.PendingAge }),
		key(meta{name: "parked", doc: "From how many parked messages on somebody is told."},
			count{least: 1, most: 10_000}, func(a *Alerts) *int { return &a.Parked }),
		key(meta{name: "duplicate_spike", doc: "`true` has somebody told when most of what is delivered are copies, however few come."},
			boolean{}, func(a *Alerts) *bool { return &a.DuplicateSpike }),
	}}
}
