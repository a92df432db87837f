package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// The tables of the inbox.

func inboxKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "ack", def: "after_effect", doc: "When the broker is settled, with `strategy: inbox`: `after_effect`, or `after_receipt`, when the message stands in the store's inbox. Its backlog is the inbox's then, which the broker does not show: `alerts.pending_age` must say how old it may become."},
			choice[bool]{options: []option[bool]{
				{word: "after_effect", value: false}, {word: "after_receipt", value: true}}},
			func(c *Consumer) *bool { return &c.AckOnReceipt }),
		group(meta{name: "inbox", doc: "How messages that wait in the store are worked on: received ones, and those whose wait is longer than `max_in_memory_wait`. Each process claims some for a time."},
			inboxShape(), func(c *Consumer) *consumer.InboxPolicy { return &c.Inbox }),
		group(meta{name: "alerts", doc: "What somebody wants to be told of. `semel alerts` makes rules for Prometheus of them; see [alerts](alerts.md)."},
			alertsShape(), func(c *Consumer) *Alerts { return &c.Alerts }),
	}
}

func inboxShape() object[consumer.InboxPolicy] {
	return object[consumer.InboxPolicy]{fields: []field[consumer.InboxPolicy]{
		key(meta{name: "lease", def: legible.Span(consumer.Defaults().Inbox.Lease), doc: "How long a claim lasts that nobody extends, by the store's clock. As long as that a message waits whose process died. A handler that runs longer has its claim extended up to `timeout`."},
			span{least: time.Second, most: time.Hour}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Lease }),
		key(meta{name: "poll", def: legible.Span(consumer.Defaults().Inbox.Poll), doc: "How long a consumer with nothing to do waits at most before it asks the store for what is due."},
			span{least: 10 * time.Millisecond, most: time.Minute}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Poll }),
		key(meta{name: "max_crashes", def: fmt.Sprint(consumer.Defaults().Inbox.MaxCrashes), doc: "How often a message may be begun by processes that die of it, or of something else. Then it is parked as `kills its process`."},
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

func retentionKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "retention", def: "forever", doc: "How long identities are recognised after their messages have ended: a duration, or `forever`. What is parked, or has not ended, stays. It must not be shorter than a copy can come late; see [retention](retention.md)."},
			retentionShape(), func(c *Consumer) *consumer.RetentionPolicy { return &c.Retention }),
		key(meta{name: "on_expired", def: "park", doc: "What becomes of a message that is older than what `retention` covers, and of which nothing is known: nobody can tell whether it took effect before."},
			endings(park(), deadLetter(), halt(), option[consumer.Action]{word: "discard", value: consumer.ActionDiscard}),
			func(c *Consumer) *consumer.Action { return &c.OnExpired }),
	}
}

func retentionShape() object[consumer.RetentionPolicy] {
	return object[consumer.RetentionPolicy]{
		short: keepPolicy{},
		fields: []field[consumer.RetentionPolicy]{
			key(meta{name: "keep", def: "forever", doc: "How long identities are recognised: a duration, or `forever`."},
				keepShape{}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Keep }),
			key(meta{name: "bodies", doc: "After how long the bodies of messages in the store are removed that are completed or discarded; their identities stay."},
				span{least: time.Minute, most: longestKeep}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Bodies }),
			key(meta{name: "delay", doc: "How late a producer, or what lies between it and the broker, may send a copy. It is added to what the broker keeps."},
				span{least: 0, most: longestKeep}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Delay }),
			key(meta{name: "id_time", def: "none", doc: "Which time ids carry, by which a message's age is judged: `uuidv7`, `ulid` or `snowflake`. Without it, or where an id is of another kind, it is the time of its record, else the `time` of the event. A message without any is ended by `on_expired` from the first on."},
				choice[identity.IDTime]{options: []option[identity.IDTime]{
					{word: "none", value: identity.NoIDTime}, {word: "uuidv7", value: identity.UUIDv7}, {word: "ulid", value: identity.ULID}, {word: "snowflake", value: identity.Snowflake}}},
				func(r *consumer.RetentionPolicy) *identity.IDTime { return &r.IDTime }),
			key(meta{name: "daily_partitions", def: "false", doc: "With `true`, markers lie in a table of this consumer's own, in PostgreSQL, of a partition for each day by the time of the ids (`id_time`), and a day that is past `keep` is dropped at once; see [operations](operations.md#dropping-days-of-markers). An id of another kind is a bad identity, and `on_expired` says what becomes of one of a day that has not come."},
				boolean{},
				func(r *consumer.RetentionPolicy) *bool { return &r.DailyPartitions }),
			key(meta{name: "off", def: "false", doc: "Whether nothing is removed, whoever runs a reaper."},
				boolean{}, func(r *consumer.RetentionPolicy) *bool { return &r.Off }),
		}}
}

// longestKeep is the longest retention but for ever.
const longestKeep = 100 * 365 * day

// forever is the word for a retention without an end.
const forever = "forever"

// keepShape is how long something is kept; 0 is for ever.
type keepShape struct{ leaf }

func (s keepShape) read(d *decoder, p place) (time.Duration, bool) {
	text, ok := d.text(&p, s.words())
	if !ok || text == forever {
		return 0, ok
	}
	if _, isSpan := parseSpan(text); !isSpan {
		d.fault(p, p.shown(text)+" is not "+s.words(), "write a number with its unit, as 30d, or forever")
		return 0, false
	}
	return s.span().read(d, p)
}

func (keepShape) span() span { return span{least: time.Minute, most: longestKeep} }

func (s keepShape) words() string { return forever + ", or " + s.span().words() }

// keepPolicy is a retention that says nothing but how long.
type keepPolicy struct{ keepShape }

func (s keepPolicy) read(d *decoder, p place) (consumer.RetentionPolicy, bool) {
	keep, ok := s.keepShape.read(d, p)
	return consumer.RetentionPolicy{Keep: keep}, ok
}

func (s keepShape) schema() schema {
	return schema{"anyOf": []schema{orVariable(schema{"const": forever}), s.span().schema()}}
}

func replayShape() object[Replay] {
	return object[Replay]{fields: []field[Replay]{
		key(meta{name: "allowed", doc: "Whether they may be. The default is `true` for an `effect` of the kinds `projection`, `cache` and `audit_copy` that calls nobody, otherwise `false`."},
			boolean{}, func(r *Replay) *bool { return &r.Allowed }),
		key(meta{name: "effects", def: "none", doc: "What a replay may do outside of the store: with `none` intents are written down as `suppressed`, and are not sent unless somebody says so (`semel intents send`); with `real` they are sent, and endpoints are called as ever. A consumer that calls an endpoint itself may write `none` with `looks` only."},
			choice[bool]{options: []option[bool]{{word: "none", value: false}, {word: "real", value: true}}}, func(r *Replay) *bool { return &r.Effects }),
		key(meta{name: "max_age", doc: "How old a message may be that is replayed; older ones are left out and counted. It must not exceed `retention`, which is the default: of an older message nobody knows whether it took effect."},
			span{least: time.Minute, most: longestKeep}, func(r *Replay) *time.Duration { return &r.MaxAge }),
		key(meta{name: "looks", def: "false", doc: "That the endpoint of `handler.http` looks whether effects are allowed: each request of a replay has the header `semel-replay` with its number, and `semel-effects: none` or `real`."},
			boolean{}, func(r *Replay) *bool { return &r.Looks }),
	}}
}

func effectShape() object[Effect] {
	return object[Effect]{fields: []field[Effect]{
		key(meta{name: "kind", required: true, doc: "Which kind it is. See [effects](#effects)."},
			effectKindWord(), func(e *Effect) *EffectKind { return &e.Kind }),
		key(meta{name: "says", required: true, doc: "What a second one would do, in a sentence for whoever decides at night whether a message may run again."},
			word{what: "a sentence"}, func(e *Effect) *string { return &e.Says }),
	}}
}

func effectKindWord() choice[EffectKind] {
	var c choice[EffectKind]
	for _, k := range effectKinds() {
		c.options = append(c.options, option[EffectKind]{word: string(k.kind), value: k.kind})
	}
	return c
}

// Effect is what a consumer does to the business, in its author's words.
type Effect struct {
	Kind EffectKind
	// Says is a sentence for those who decide whether it may be done again.
	Says string
}

// EffectKind is a kind of business effect; its text is the word of the policy.
type EffectKind string

// The kinds.
const (
	Projection EffectKind = "projection"
	Cache      EffectKind = "cache"
	Entity     EffectKind = "entity"
	AuditCopy  EffectKind = "audit_copy"
	Ledger     EffectKind = "ledger"
	Intent     EffectKind = "intent"
	Command    EffectKind = "command"
	External   EffectKind = "external"
)

// effectKind is what is known of a kind. The rules judge by it, and the table of
// docs/policy.md is made of it.
type effectKind struct {
	kind EffectKind
	// is says what it is.
	is string
	// refused says, by guard, why it is no guard for this kind.
	refused map[guard]string
	// stated: how long copies are recognised is written down, not left to the default.
	stated bool
}

// elsewhere is why nothing in a transaction guards what is done outside.
const elsewhere = "what is done outside is in no transaction, and happens as often as its handler runs"

// guard is what makes an effect happen once; a strategy has one or two of them.
type guard string

const (
	byMarker      guard = "`marker`, `inbox`"
	byBusinessKey guard = "`business_key` alone"
	byNature      guard = "`natural`"
	byLease       guard = "`lease`"
	// byAnswer: the call may happen again, what its answer names is done once.
	byAnswer guard = "`effects` in an answer"
)

func guards() []guard { return []guard{byMarker, byBusinessKey, byNature, byLease, byAnswer} }

// guard is the one that counts: beside a marker, a constraint is a second one.
func (c *Consumer) guard() guard {
	s := c.Strategy
	switch {
	case (s.Lease || s.Marks()) && c.Handler.HTTP != nil && c.Handler.HTTP.Effects != nil:
		return byAnswer
	case s.Lease:
		return byLease
	case s.Marks():
		return byMarker
	case s.BusinessKey != nil:
		return byBusinessKey
	}
	return byNature
}

func effectKinds() []effectKind {
	return []effectKind{
		{kind: Projection, is: "state that can be made anew from the messages: a read model, a search index"},
		{kind: Cache, is: "a copy that may be thrown away"},
		{kind: Entity, is: "the state of a business object, which a message sets"},
		{kind: AuditCopy, is: "each message is kept, as it came"},
		{kind: Ledger, is: "each message adds: an entry, an amount, a stock", stated: true,
			refused: map[guard]string{byNature: "each copy adds to a ledger",
				byLease: "a call whose answer was lost is made again, and adds again unless the other side keeps its key"}},
		{kind: Intent, is: "a row that orders something to be done elsewhere", stated: true,
			refused: map[guard]string{byNature: "a second row orders it a second time"}},
		{kind: Command, is: "a request, which may be refused", stated: true,
			refused: map[guard]string{
				byNature:      "the state that refused a command may have changed when its copy comes, which would then be obeyed",
				byBusinessKey: "a command that was refused leaves nothing in the table, and its copy may then be obeyed",
			}},
		{kind: External, is: "something outside of the database: a payment, a mail", stated: true,
			refused: map[guard]string{
				byMarker:      elsewhere,
				byBusinessKey: elsewhere,
				byNature:      "each copy does it again",
			}},
	}
}

// known is what is known of the kind of an effect, or false for no kind.
func (e *Effect) known() (effectKind, bool) {
	if e != nil {
		for _, k := range effectKinds() {
			if k.kind == e.Kind {
				return k, true
			}
		}
	}
	return effectKind{}, false
}
