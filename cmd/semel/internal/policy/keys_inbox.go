package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// The tables of the inbox.

func inboxKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "ack", Def: "after_effect", Doc: "When to ack, with `strategy: inbox`: `after_effect`, or `after_receipt`, as soon as the message is in the inbox. The backlog is then in the inbox and not in the broker's lag, so `alerts.pending_age` is required."},
			shape.Choice[bool]{Options: []shape.Option[bool]{
				{Word: "after_effect", Value: false}, {Word: "after_receipt", Value: true}}},
			func(c *Consumer) *bool { return &c.AckOnReceipt }),
		shape.Group(shape.Meta{Name: "inbox", Doc: "How waiting messages in the store are processed: received ones, and those that wait longer than `max_in_memory_wait`. Each process claims some of them."},
			inboxShape(), func(c *Consumer) *consumer.InboxPolicy { return &c.Inbox }),
		shape.Group(shape.Meta{Name: "alerts", Doc: "Thresholds for alerts. `semel alerts` prints them as Prometheus rules; see [alerts](alerts.md)."},
			alertsShape(), func(c *Consumer) *Alerts { return &c.Alerts }),
	}
}

func inboxShape() shape.Object[consumer.InboxPolicy] {
	return shape.Object[consumer.InboxPolicy]{Fields: []shape.Field[consumer.InboxPolicy]{
		shape.Key(shape.Meta{Name: "lease", Def: legible.Span(consumer.Defaults().Inbox.Lease), Doc: "How long a claim lasts without an extension, by the store's clock. If a process dies, its messages wait this long. Claims of running handlers are extended up to `timeout`."},
			shape.Span{Least: time.Second, Most: time.Hour}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Lease }),
		shape.Key(shape.Meta{Name: "poll", Def: legible.Span(consumer.Defaults().Inbox.Poll), Doc: "The maximum interval at which an idle consumer asks the store for due rows."},
			shape.Span{Least: 10 * time.Millisecond, Most: time.Minute}, func(i *consumer.InboxPolicy) *time.Duration { return &i.Poll }),
		shape.Key(shape.Meta{Name: "max_crashes", Def: fmt.Sprint(consumer.Defaults().Inbox.MaxCrashes), Doc: "The number of process deaths while handling a message after which it is parked as `kills its process`."},
			shape.Count{Least: 1, Most: 100}, func(i *consumer.InboxPolicy) *int { return &i.MaxCrashes }),
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

func alertsShape() shape.Object[Alerts] {
	return shape.Object[Alerts]{Fields: []shape.Field[Alerts]{
		shape.Key(shape.Meta{Name: "pending_age", Doc: "The maximum age of waiting messages in the inbox."},
			shape.Span{Least: time.Second, Most: 365 * shape.Day}, func(a *Alerts) *time.Duration { return &a.PendingAge }),
		shape.Key(shape.Meta{Name: "parked", Doc: "The number of parked messages that fires the alert."},
			shape.Count{Least: 1, Most: 10_000}, func(a *Alerts) *int { return &a.Parked }),
		shape.Key(shape.Meta{Name: "duplicate_spike", Doc: "`true` fires the alert if most deliveries are duplicates, even if there are few."},
			shape.Boolean{}, func(a *Alerts) *bool { return &a.DuplicateSpike }),
	}}
}

func retentionKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "retention", Def: "forever", Doc: "How long markers are kept after their messages have ended: a duration, or `forever`. Parked and unfinished messages stay. It must not be shorter than a copy can be late; see [retention](retention.md)."},
			retentionShape(), func(c *Consumer) *consumer.RetentionPolicy { return &c.Retention }),
		shape.Key(shape.Meta{Name: "on_expired", Def: "park", Doc: "How a message without a marker ends if it is older than `retention`, so that it may have been applied before."},
			endings(park(), deadLetter(), halt(), shape.Option[consumer.Action]{Word: "discard", Value: consumer.ActionDiscard}),
			func(c *Consumer) *consumer.Action { return &c.OnExpired }),
	}
}

func retentionShape() shape.Object[consumer.RetentionPolicy] {
	return shape.Object[consumer.RetentionPolicy]{
		Short: keepPolicy{},
		Fields: []shape.Field[consumer.RetentionPolicy]{
			shape.Key(shape.Meta{Name: "keep", Def: "forever", Doc: "How long markers are kept: a duration, or `forever`."},
				keepShape{}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Keep }),
			shape.Key(shape.Meta{Name: "bodies", Doc: "The time after which bodies of completed and discarded messages are removed; their markers stay."},
				shape.Span{Least: time.Minute, Most: longestKeep}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Bodies }),
			shape.Key(shape.Meta{Name: "delay", Doc: "How late a producer, or a system between it and the broker, may send a copy. It is added to the retention of the broker."},
				shape.Span{Least: 0, Most: longestKeep}, func(r *consumer.RetentionPolicy) *time.Duration { return &r.Delay }),
			shape.Key(shape.Meta{Name: "id_time", Def: "none", Doc: "The kind of ids that contain a time, from which the age of a message is computed: `uuidv7`, `ulid` or `snowflake`. Without it, or for other ids, the age comes from the time of the record, or from the `time` of the event. A message without any time ends by `on_expired`."},
				shape.Choice[identity.IDTime]{Options: []shape.Option[identity.IDTime]{
					{Word: "none", Value: identity.NoIDTime}, {Word: "uuidv7", Value: identity.UUIDv7}, {Word: "ulid", Value: identity.ULID}, {Word: "snowflake", Value: identity.Snowflake}}},
				func(r *consumer.RetentionPolicy) *identity.IDTime { return &r.IDTime }),
			shape.Key(shape.Meta{Name: "daily_partitions", Def: "false", Doc: "`true` keeps the markers of this consumer in its own PostgreSQL table with a partition for each day of the ids' times (`id_time`), and drops whole days after `keep`; see [operations](daily-partitions.md). An id of another kind is a bad identity. An id of a future day without a partition ends by `on_expired`."},
				shape.Boolean{},
				func(r *consumer.RetentionPolicy) *bool { return &r.DailyPartitions }),
			shape.Key(shape.Meta{Name: "off", Def: "false", Doc: "`true` removes nothing, even if a reaper runs."},
				shape.Boolean{}, func(r *consumer.RetentionPolicy) *bool { return &r.Off }),
		}}
}

// longestKeep is the longest retention but for ever.
const longestKeep = 100 * 365 * shape.Day

// forever is the word for a retention without an end.
const forever = "forever"

// keepShape is how long something is kept; 0 is for ever.
type keepShape struct{ shape.Leaf }

func (s keepShape) Read(d *shape.Decoder, p shape.Place) (time.Duration, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok || text == forever {
		return 0, ok
	}
	if _, isSpan := shape.ParseSpan(text); !isSpan {
		d.Fault(p, p.Shown(text)+" is not "+s.Words(), "write a number with its unit, as 30d, or forever")
		return 0, false
	}
	return s.span().Read(d, p)
}

func (keepShape) span() shape.Span { return shape.Span{Least: time.Minute, Most: longestKeep} }

func (s keepShape) Words() string { return forever + ", or " + s.span().Words() }

// keepPolicy is a retention that says nothing but how long.
type keepPolicy struct{ keepShape }

func (s keepPolicy) Read(d *shape.Decoder, p shape.Place) (consumer.RetentionPolicy, bool) {
	keep, ok := s.keepShape.Read(d, p)
	return consumer.RetentionPolicy{Keep: keep}, ok
}

func (s keepShape) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{shape.OrVariable(shape.Schema{"const": forever}), s.span().Schema()}}
}

func replayShape() shape.Object[Replay] {
	return shape.Object[Replay]{Fields: []shape.Field[Replay]{
		shape.Key(shape.Meta{Name: "allowed", Doc: "Whether they may be. The default is `true` for an `effect` of the kinds `projection`, `cache` and `audit_copy` that calls nobody, otherwise `false`."},
			shape.Boolean{}, func(r *Replay) *bool { return &r.Allowed }),
		shape.Key(shape.Meta{Name: "effects", Def: "none", Doc: "What a replay may do outside of the store: with `none` intents are written down as `suppressed`, and are not sent unless somebody says so (`semel intents send`); with `real` they are sent, and endpoints are called as ever. A consumer that calls an endpoint itself may write `none` with `looks` only."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "none", Value: false}, {Word: "real", Value: true}}}, func(r *Replay) *bool { return &r.Effects }),
		shape.Key(shape.Meta{Name: "max_age", Doc: "How old a message may be that is replayed; older ones are left out and counted. It must not exceed `retention`, which is the default: of an older message nobody knows whether it took effect."},
			shape.Span{Least: time.Minute, Most: longestKeep}, func(r *Replay) *time.Duration { return &r.MaxAge }),
		shape.Key(shape.Meta{Name: "looks", Def: "false", Doc: "That the endpoint of `handler.http` looks whether effects are allowed: each request of a replay has the header `semel-replay` with its number, and `semel-effects: none` or `real`."},
			shape.Boolean{}, func(r *Replay) *bool { return &r.Looks }),
	}}
}

func effectShape() shape.Object[Effect] {
	return shape.Object[Effect]{Fields: []shape.Field[Effect]{
		shape.Key(shape.Meta{Name: "kind", Required: true, Doc: "Which kind it is. See [effects](#effects)."},
			effectKindWord(), func(e *Effect) *EffectKind { return &e.Kind }),
		shape.Key(shape.Meta{Name: "says", Required: true, Doc: "What a second one would do, in a sentence for whoever decides at night whether a message may run again."},
			shape.Word{What: "a sentence"}, func(e *Effect) *string { return &e.Says }),
	}}
}

func effectKindWord() shape.Choice[EffectKind] {
	var c shape.Choice[EffectKind]
	for _, k := range effectKinds() {
		c.Options = append(c.Options, shape.Option[EffectKind]{Word: string(k.kind), Value: k.kind})
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
// docs/reference/policy is generated from it.
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
