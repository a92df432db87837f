package policy

import (
	"fmt"

	"github.com/semel-go/semel/consumer"
)

// checkInbox rejects keys that need an inbox if the consumer has none, and keys that have no effect with an inbox.
func (r rules) checkInbox() {
	c := r.consumer
	if !r.isValid("strategy", "ack", "inbox", "alerts") {
		return
	}
	r.refuseIf(!c.Strategy.Inbox && !c.Strategy.Lease && r.isSet("ack"), "ack", "only strategy inbox keeps messages before their effect", "remove it, or write strategy: inbox")
	switch {
	case c.Alerts.PendingAge != 0, r.usesKeyStore():
	case r.refuseIf(c.Strategy.Lease, "strategy", "with lease messages are acked on receipt, so the broker's lag does not show waiting messages, and no alert limits their age", "write alerts: {pending_age: 60s}"):
	case r.refuseIf(c.AckOnReceipt, "ack", "with after_receipt the broker's lag does not show waiting messages, and no alert limits their age",
		"write alerts: {pending_age: 60s}, or ack: after_effect"):
	}
	r.refuseIf(!c.Strategy.Marks() && r.isSet("inbox"), "inbox", noInbox, "remove it")
	for _, alert := range []string{"alerts.pending_age", "alerts.parked"} {
		r.refuseIf(!c.Strategy.Marks() && r.isSet(alert), alert, noInbox, "remove it")
	}
}

// checkKeyLanes warns about lanes by key if the source does not keep the order of a key's messages.
func (r rules) checkKeyLanes(s *Source) {
	c := r.consumer
	if c.Lanes != consumer.LanesKey || !r.isValid("lanes") {
		return
	}
	r.warnIf(r.isValid("ack", "on_parked") && c.AckOnReceipt && !r.isSet("version") && c.OnParked == consumer.OnParkedSkip, "on_parked", "messages are received in order, but with skip they are processed from the inbox in any order", "write on_parked: block, or let version keep the order")
	r.refuseIf(s.deliversOnce(), "lanes", "webhooks have no key, so no order would be kept", "write lanes: none, or let version keep the order")
	if s != nil && s.File != nil {
		r.refuseIf(r.Sound("sources."+s.Name+".file.format") && s.File.Format != "envelope", "lanes", fmt.Sprintf("source %s has the format %s, whose messages have no key, so no order would be kept", s.Name, s.File.Format),
			"write lanes: partition, or format: envelope at the source")
	}
}

// noInbox is the reason why a consumer's messages cannot wait in the store.
const noInbox = "this strategy writes no marker, and only messages with a marker can wait in the store"

// checkVersion checks settings that interact with versions.
func (r rules) checkVersion() {
	v := r.consumer.Version
	if v == nil || !r.isValid("version") {
		return
	}
	r.refuseIf(r.isSet("dedup"), "version", "the user's table in dedup has no streams, and other code that writes to it would not advance them", "remove it, or dedup; semel migrate seed imports the ids of such a table")
	r.warnIf(v.Start.FirstSeen, "version.start", "a version that arrives later and is smaller than the first one is discarded", "write the first version of streams, if the source has the beginning of every stream")
}

// checkDedup checks the user's own deduplication table.
func (r rules) checkDedup(p *Policy) {
	c := r.consumer
	if c.Dedup == nil || !r.isValid("dedup", "strategy", "identity") {
		return
	}
	if r.refuseIf(!c.Strategy.Marks(), "dedup", "this strategy writes no marker, but the table is for markers", "remove it, or write strategy: marker") {
		return
	}
	r.refuseIf(c.Identity.Previous != nil, "identity.previous", "the user's table in dedup has the ids of only one identity", "remove it, or dedup; semel migrate seed imports the ids of such a table")
	r.refuseIf(r.store != nil && r.store.Postgres == nil, "dedup", "only a table in PostgreSQL can be used", "import its ids instead: semel migrate seed")
	_, constant := c.Identity.ConstantSource()
	r.refuseIf(!constant && c.Dedup.Columns.Source == "", "dedup.columns", fmt.Sprintf("the table has no column for the source, but messages have a source (%s): messages of two sources with the same id could not be distinguished", c.Identity.Source),
		"name the column, as source: origin, or let identity.source be a constant, as \"const:shop\"")
	r.checkSharedDedup(p)
}

// checkSharedDedup rejects two consumers that write to the same deduplication table under the same name. Each consumer
// would treat the rows of the other consumer as its own rows.
func (r rules) checkSharedDedup(p *Policy) {
	for _, other := range p.Consumers {
		if other == r.consumer {
			return
		}
		if other.Dedup == nil || other.Store != r.consumer.Store || other.Dedup.Table != r.consumer.Dedup.Table {
			continue
		}
		switch mine, theirs := r.consumer.Dedup, other.Dedup; {
		case r.refuseIf(mine.Columns.Consumer == "" || theirs.Columns.Consumer == "", "dedup.table", fmt.Sprintf("consumer %s also uses this table, and no column distinguishes the two: each would skip messages that the other has applied", other.Name),
			"name the column at both, as columns: {consumer: handler}, or use another table"):
		case r.refuseIf(mine.consumerValue(r.consumer.Name) == theirs.consumerValue(other.Name), "dedup.values", fmt.Sprintf("consumer %s has the same value in this table: each would skip messages that the other has applied", other.Name),
			"use different values"):
		}
	}
}

// consumerValue returns the value that a consumer writes to the consumer column of the table.
func (t *Dedup) consumerValue(consumer string) string {
	if value, ok := t.Values[t.Columns.Consumer]; ok {
		return value
	}
	return consumer
}

func (r rules) checkSteps() {
	c := r.consumer
	for _, h := range c.Handler.Types {
		r.refuseIf(h.SQL != nil && h.SQL.Steps != nil, "handler.types"+typePath(h.Type)+".sql.steps", "a consumer has one list of steps for all its messages",
			"give this type a consumer of its own, with filter: {type: …} and handler: {sql: {steps: …}}")
	}
	if c.Handler.SQL == nil || c.Handler.SQL.Steps == nil || !r.isValid("handler.sql") {
		return
	}
	r.refuseIf(r.isSet("handler.sql.intents"), "handler.sql.intents", "with steps, intents are part of a step", "move it into a step")
	r.refuseIf(c.Strategy.BusinessKey != nil && r.isValid("strategy"), "strategy", "a violation of the business key in one step says nothing about the other steps", "write strategy: inbox, and use on conflict in the statement")
}
