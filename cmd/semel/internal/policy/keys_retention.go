package policy

import (
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
)

// The table of a consumer's retention.

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
