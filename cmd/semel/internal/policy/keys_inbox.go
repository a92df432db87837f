package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// This file has the tables of the inbox.

func inboxKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "ack", Def: "after_effect", Doc: "When to ack, with `strategy: inbox`: `after_effect`, or `after_receipt`, as soon as the message is in the inbox. The backlog is then in the inbox and not in the broker's lag, so `alerts.pending_age` is required."},
			shape.Choice[bool]{Options: []shape.Option[bool]{
				{Word: "after_effect", Value: false}, {Word: "after_receipt", Value: true}}},
			func(c *Consumer) *bool { return &c.AckOnReceipt }),
		shape.Group(shape.Meta{Name: "inbox", Doc: "How messages that wait in the store are processed: received messages, and messages that wait longer than `max_in_memory_wait`. Each process claims some of these messages."},
			inboxShape(), func(c *Consumer) *consumer.InboxPolicy { return &c.Inbox }),
		shape.Group(shape.Meta{Name: "alerts", Doc: "Thresholds for alerts. `semel generate alerts` prints them as Prometheus rules; see [alerts](alerts.md)."},
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

// Alerts are the alert thresholds of one consumer. The thresholds in Alerts replace the default thresholds.
type Alerts struct {
	// PendingAge is the maximum age of waiting messages; 0 means the default.
	PendingAge time.Duration
	// Parked is the number of parked messages at which the alert fires; 0 means the default.
	Parked int
	// DuplicateSpike lets the duplicate alert also fire for small numbers of deliveries, if most of the
	// deliveries are duplicates.
	DuplicateSpike bool
}

// Any reports whether the policy sets a threshold for the consumer.
func (a Alerts) Any() bool { return a != Alerts{} }

// Unserved reports whether the consumer has alerts although `semel run` serves no metrics.
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
		shape.Key(shape.Meta{Name: "retention", Def: "forever", Doc: "How long markers are kept after their messages have ended: a duration, or `forever`. Markers of parked and unfinished messages stay. The retention must not be shorter than the maximum delay of a copy; see [retention](retention.md)."},
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
			shape.Key(shape.Meta{Name: "delay", Doc: "How late a producer, or a system between producer and broker, may send a copy. The delay is added to the retention of the broker."},
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

// longestKeep is the maximum retention, except forever.
const longestKeep = 100 * 365 * shape.Day

// forever is the policy's word for unlimited retention.
const forever = "forever"

// keepShape describes a retention. The value forever is read as 0.
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

// keepPolicy describes a retention with only a duration.
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
		shape.Key(shape.Meta{Name: "allowed", Doc: "Whether messages may be replayed. The default is `true` for an `effect` of the kinds `projection`, `cache` and `audit_copy` without calls to other systems, otherwise `false`."},
			shape.Boolean{}, func(r *Replay) *bool { return &r.Allowed }),
		shape.Key(shape.Meta{Name: "effects", Def: "none", Doc: "The external effects of a replay. `none`: intents are stored as `suppressed` and only sent by `semel intents retry`. `real`: intents are sent, and endpoints are called as usual. A consumer that calls an endpoint itself may only use `none` with `looks`."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "none", Value: false}, {Word: "real", Value: true}}}, func(r *Replay) *bool { return &r.Effects }),
		shape.Key(shape.Meta{Name: "max_age", Doc: "The maximum age of replayed messages; older ones are skipped and counted. It must not exceed `retention`, which is the default, because it is unknown whether an older message took effect."},
			shape.Span{Least: time.Minute, Most: longestKeep}, func(r *Replay) *time.Duration { return &r.MaxAge }),
		shape.Key(shape.Meta{Name: "looks", Def: "false", Doc: "`true` declares that the endpoint of `handler.http` checks whether effects are allowed: each request of a replay has the header `semel-replay` with its number, and `semel-effects: none` or `real`."},
			shape.Boolean{}, func(r *Replay) *bool { return &r.Looks }),
	}}
}

func effectShape() shape.Object[Effect] {
	return shape.Object[Effect]{Fields: []shape.Field[Effect]{
		shape.Key(shape.Meta{Name: "kind", Required: true, Doc: "The kind of the effect. See [effects](#effects)."},
			effectKindWord(), func(e *Effect) *EffectKind { return &e.Kind }),
		shape.Key(shape.Meta{Name: "says", Required: true, Doc: "The consequence of a second effect, in one sentence for operators who decide whether to process a message again."},
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

// Effect is the declared effect of a consumer.
type Effect struct {
	Kind EffectKind
	// Says describes the effect for operators who must decide whether the effect may happen again.
	Says string
}

// EffectKind is a kind of business effect, written as in the policy.
type EffectKind string

// The kinds of effects.
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

// effectKind describes a kind of effect. Rules use the table of kinds, and a test generates the table in
// docs/reference/policy from the table of kinds.
type effectKind struct {
	kind EffectKind
	// definition contains a short definition of the kind of effect.
	definition string
	// unsuitableGuards maps each guard that does not protect this kind of effect to the reason.
	unsuitableGuards map[guard]string
	// If needsRetention is true, the policy must set the retention explicitly.
	needsRetention bool
}

// externalReason is a text: the reason why a transaction cannot protect external effects.
const externalReason = "an external effect is not part of a transaction, and happens each time its handler runs"

// guard is a mechanism that makes an effect happen once. A strategy has one or two guards.
type guard string

const (
	byMarker      guard = "`marker`, `inbox`"
	byBusinessKey guard = "`business_key` alone"
	byNature      guard = "`natural`"
	byLease       guard = "`lease`"
	// byAnswer protects the effects in a response. The call to the endpoint may be repeated.
	byAnswer guard = "`effects` in a response"
)

// guard returns the consumer's main guard. If the consumer has a marker and a unique constraint, the marker
// is the main guard.
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
		{kind: Projection, definition: "state that can be rebuilt from the messages: a read model, a search index"},
		{kind: Cache, definition: "a copy that may be deleted"},
		{kind: Entity, definition: "the state of a business object, which a message sets"},
		{kind: AuditCopy, definition: "each message is kept unchanged"},
		{kind: Ledger, definition: "each message adds something: an entry, an amount, a quantity", needsRetention: true,
			unsuitableGuards: map[guard]string{byNature: "each copy adds to a ledger",
				byLease: "a call without an answer is repeated, and adds again unless the other side remembers its key"}},
		{kind: Intent, definition: "a row that requests an action in another system", needsRetention: true,
			unsuitableGuards: map[guard]string{byNature: "a second row requests the action a second time"}},
		{kind: Command, definition: "a request that may be rejected", needsRetention: true,
			unsuitableGuards: map[guard]string{
				byNature:      "the state may have changed after a command was rejected, and its copy would then be accepted",
				byBusinessKey: "a rejected command leaves nothing in the table, so its copy may be accepted later",
			}},
		{kind: External, definition: "something outside the database: a payment, a mail", needsRetention: true,
			unsuitableGuards: map[guard]string{
				byMarker:      externalReason,
				byBusinessKey: externalReason,
				byNature:      "each copy repeats the effect",
			}},
	}
}

// description returns the description of the effect's kind. The method returns false if the policy
// declares no effect.
func (e *Effect) description() (effectKind, bool) {
	if e != nil {
		for _, k := range effectKinds() {
			if k.kind == e.Kind {
				return k, true
			}
		}
	}
	return effectKind{}, false
}
