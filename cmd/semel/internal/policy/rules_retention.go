package policy

import (
	"fmt"

	"github.com/semel-go/semel/identity"
)

// retention: what is late can only be told where messages have a time, and where something
// is removed.
func (r rules) retention(s *Source, store *Store) {
	c := r.consumer
	if r.keyed() || !r.ok("retention", "on_expired", "strategy") {
		return
	}
	if c.Retention.DailyPartitions && r.days(store) {
		return
	}
	keep := c.Retention.Keep
	switch {
	case keep == 0 && r.set("on_expired"):
		r.warn("on_expired", "nothing is late where identities are kept for ever", "remove it, or write how long they are kept, as retention: 30d")
	case keep == 0 && (c.Retention.Delay > 0 || c.Retention.IDTime != identity.NoIDTime):
		r.warn("retention", "identities are kept for ever, however late a copy comes", "write nothing but forever, or how long they are kept, as keep: 30d")
	case keep > 0 && c.Retention.Bodies >= keep && c.Retention.Bodies > 0:
		r.refuse("retention.bodies", "bodies are to be kept for longer than their messages", "write less than keep, or remove it")
	case keep > 0 && !c.Strategy.Marks():
		r.warn("retention", "this strategy writes no marker: nothing but rows that were set aside is kept", "remove it, or write strategy: marker")
	case keep > 0 && c.Version == nil && c.Retention.IDTime == identity.NoIDTime && s.timeless():
		r.refuse("retention", "messages of the source "+s.Name+" carry no time, by which late ones could be told",
			"write which time their ids carry, as retention: {keep: 30d, id_time: uuidv7}; have the producer write CloudEvents with a time; or keep them for ever")
	}
}

// days refuses days of markers where the consumer cannot have them, and reports whether it
// did.
func (r rules) days(store *Store) bool {
	c := r.consumer
	switch {
	case c.Strategy.Lease: // which says so itself
		return false
	case c.Retention.Keep == 0 || c.Retention.IDTime == identity.NoIDTime:
		r.refuse("retention.daily_partitions", "days can be dropped where ids carry their time, and where something is removed", "write keep: 30d and id_time: uuidv7 (or ulid, or snowflake) beside it, or remove it")
	case c.Dedup != nil || !c.Strategy.Marks():
		r.refuse("retention.daily_partitions", "its markers would lie in a table of the consumer's own, and this consumer marks elsewhere", "remove it, or dedup, and write strategy: marker")
	case store != nil && store.SQLite != nil:
		r.refuse("retention.daily_partitions", fmt.Sprintf("days are partitions of a table in PostgreSQL, and store %s is SQLite", store.Name), "remove it: markers are removed in slices there; or use a store in PostgreSQL")
	default:
		return false
	}
	return true
}

// timeless reports whether messages of a source surely carry no time.
func (s *Source) timeless() bool {
	return s.once() || s != nil && s.File != nil && s.File.Format == "json"
}
