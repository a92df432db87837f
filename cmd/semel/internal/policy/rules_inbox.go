package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/steplimit"
)

// inbox rejects keys that need an inbox if the consumer has none, and keys that have no effect with an
// inbox.
func (r rules) inbox() {
	c := r.consumer
	if !r.ok("strategy", "ack", "inbox", "alerts") {
		return
	}
	if !c.Strategy.Inbox && !c.Strategy.Lease && r.set("ack") {
		r.refuse("ack", "only strategy inbox keeps messages before their effect", "remove it, or write strategy: inbox")
	}
	switch {
	case c.Alerts.PendingAge != 0, r.keyed():
	case c.Strategy.Lease:
		r.refuse("strategy", "with lease messages are acked on receipt, so the broker's lag does not show waiting messages, and no alert limits their age", "write alerts: {pending_age: 60s}")
	case c.AckOnReceipt:
		r.refuse("ack", "with after_receipt the broker's lag does not show waiting messages, and no alert limits their age",
			"write alerts: {pending_age: 60s}, or ack: after_effect")
	}
	if !c.Strategy.Marks() && r.set("inbox") {
		r.refuse("inbox", noInbox, "remove it")
	}
	for _, alert := range []string{"alerts.pending_age", "alerts.parked"} {
		if !c.Strategy.Marks() && r.set(alert) {
			r.refuse(alert, noInbox, "remove it")
		}
	}
}

// The rule keys warns about lanes by key if the source does not keep the order of a key's messages.
func (r rules) keys(s *Source) {
	c := r.consumer
	if c.Lanes != consumer.LanesKey || !r.ok("lanes") {
		return
	}
	if r.ok("ack", "on_parked") && c.AckOnReceipt && !r.set("version") && c.OnParked == consumer.OnParkedSkip {
		r.warn("on_parked", "messages are received in order, but with skip they are processed from the inbox in any order", "write on_parked: block, or let version keep the order")
	}
	if s.once() {
		r.refuse("lanes", "webhooks have no key, so no order would be kept", "write lanes: none, or let version keep the order")
	}
	if s != nil && s.File != nil && r.Sound("sources."+s.Name+".file.format") && s.File.Format != "envelope" {
		r.refuse("lanes", fmt.Sprintf("source %s has the format %s, whose messages have no key, so no order would be kept", s.Name, s.File.Format),
			"write lanes: partition, or format: envelope at the source")
	}
}

// The rule blocks checks the setting on_parked: block.
func (r rules) blocks() {
	c := r.consumer
	if c.OnParked != consumer.OnParkedBlock || !r.ok("on_parked", "lanes", "strategy") {
		return
	}
	switch {
	case c.Lanes == consumer.LanesNone:
		r.refuse("on_parked", "with lanes: none there is no order, so no message waits for another", "write lanes: key, or remove it")
	case !c.Strategy.Marks():
		r.refuse("on_parked", noInbox, "remove it, or write strategy: marker")
	case r.set("version"):
		r.refuse("on_parked", "with version, a parked message blocks the later versions of its stream anyway, and no other messages", "remove it")
	}
}

// noInbox is the reason why a consumer's messages cannot wait in the store.
const noInbox = "this strategy writes no marker, and only messages with a marker can wait in the store"

// longWaits rejects waits that are too long for memory if the consumer has no inbox.
func (r rules) longWaits() {
	c := r.consumer
	if c.Retry.MaxDelay > c.MaxInMemoryWait && !c.Strategy.Marks() {
		r.refuse("retry.max_delay", fmt.Sprintf("a wait of %s is longer than max_in_memory_wait, %s, and cannot be kept: %s", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait), noInbox),
			fmt.Sprintf("write at most %s, or a longer max_in_memory_wait", legible.Span(c.MaxInMemoryWait)))
	}
}

// The rule previous rejects settings that cannot be combined with identity.previous.
func (r rules) previous() {
	c := r.consumer
	f := c.Identity.Previous
	if f == nil || !r.ok("identity", "strategy", "fingerprint", "version", "dedup", "retention") {
		return
	}
	const key, remove = "identity.previous", "remove it"
	switch {
	case !c.Strategy.Marks():
		r.refuse(key, "this strategy writes no marker, so there is nothing under another identity", remove)
	case selected(f.ID, f.Source).Derivation() == selected(c.Identity.ID, c.Identity.Source).Derivation():
		r.refuse(key, "it is the current identity", "write the previous identity, or remove it")
	case c.Fingerprint.None:
		r.refuse(key, "without a fingerprint, several messages with the same previous identity cannot be distinguished from copies, and all except one would be lost", "write fingerprint: body")
	case c.Version != nil:
		r.refuse(key, "the streams of another identity start again, so versions would be checked twice", "remove it, or version; a consumer with another name can continue where this one ended")
	case c.Retention.DailyPartitions:
		r.refuse(key, "daily partitions of markers have the ids of only one identity", "remove it, or retention.daily_partitions")
	case r.set("dedup"):
		r.refuse(key, "the user's table in dedup has the ids of only one identity", "remove it, or dedup; semel migrate seed imports the ids of such a table")
	}
	if reason, remedy := split(selected(f.ID, f.Source).Validate(), "write the previous identity.id"); reason != "" {
		r.refuse(key, reason, remedy)
	}
}

// The rule exclusive rejects the key "exclusive" for consumers with one handler for all types. Services whose
// handler processes all types cannot be distinguished.
func (r rules) exclusive() {
	if r.consumer.Exclusive && r.ok("handler") && r.consumer.owner() == "" {
		r.refuse("exclusive", "there is one handler for all types, so this service cannot be distinguished from another", "write handler: {types: …}, or remove it")
	}
}

// version checks settings that interact with versions.
func (r rules) version() {
	v := r.consumer.Version
	if v == nil || !r.ok("version") {
		return
	}
	if reason, remedy := split(v.by().Validate(), "write version: {stream: \"body:/order\", number: \"body:/version\"}"); reason != "" {
		r.refuse("version", reason, remedy)
	}
	if r.ok("strategy") && !r.consumer.Strategy.Marks() {
		r.refuse("version", noInbox+": a version without its predecessor could not wait", "remove it, or write strategy: marker")
	}
	if r.set("dedup") {
		r.refuse("version", "the user's table in dedup has no streams, and other code that writes to it would not advance them", "remove it, or dedup; semel migrate seed imports the ids of such a table")
	}
	if v.Start.FirstSeen {
		r.warn("version.start", "a version that arrives later and is smaller than the first one is discarded", "write the first version of streams, if the source has the beginning of every stream")
	}
}

// dedup checks the user's own deduplication table.
func (r rules) dedup(p *Policy) {
	c := r.consumer
	if c.Dedup == nil || !r.ok("dedup", "strategy", "identity") {
		return
	}
	if !c.Strategy.Marks() {
		r.refuse("dedup", "this strategy writes no marker, but the table is for markers", "remove it, or write strategy: marker")
		return
	}
	if s := p.Store(c.Store); s != nil && s.Postgres == nil {
		r.refuse("dedup", "only a table in PostgreSQL can be used", "import its ids instead: semel migrate seed")
	}
	if _, constant := c.Identity.ConstantSource(); !constant && c.Dedup.Columns.Source == "" {
		r.refuse("dedup.columns", fmt.Sprintf("the table has no column for the source, but messages have a source (%s): messages of two sources with the same id could not be distinguished", c.Identity.Source),
			"name the column, as source: origin, or let identity.source be a constant, as \"const:shop\"")
	}
	r.sharing(p)
}

// sharing rejects two consumers that write to the same deduplication table under the same name. Each consumer
// would treat the rows of the other consumer as its own rows.
func (r rules) sharing(p *Policy) {
	for _, other := range p.Consumers {
		if other == r.consumer {
			return
		}
		if other.Dedup == nil || other.Store != r.consumer.Store || other.Dedup.Table != r.consumer.Dedup.Table {
			continue
		}
		switch mine, theirs := r.consumer.Dedup, other.Dedup; {
		case mine.Columns.Consumer == "" || theirs.Columns.Consumer == "":
			r.refuse("dedup.table", fmt.Sprintf("consumer %s also uses this table, and no column distinguishes the two: each would skip messages that the other has applied", other.Name),
				"name the column at both, as columns: {consumer: handler}, or use another table")
		case mine.named(r.consumer.Name) == theirs.named(other.Name):
			r.refuse("dedup.values", fmt.Sprintf("consumer %s has the same value in this table: each would skip messages that the other has applied", other.Name),
				"use different values")
		}
	}
}

// The method named returns the value that a consumer writes to the consumer column of the table.
func (t *Dedup) named(consumer string) string {
	if value, ok := t.Values[t.Columns.Consumer]; ok {
		return value
	}
	return consumer
}

// The rule steps checks a handler with steps.
func (r rules) steps() {
	c := r.consumer
	for _, h := range c.Handler.Types {
		if h.SQL != nil && h.SQL.Steps != nil {
			r.refuse("handler.types"+typePath(h.Type)+".sql.steps", "a consumer has one list of steps for all its messages",
				"give this type a consumer of its own, with filter: {type: …} and handler: {sql: {steps: …}}")
		}
	}
	const at = "handler.sql.steps"
	if c.Handler.SQL == nil || c.Handler.SQL.Steps == nil || !r.ok("handler.sql") {
		return
	}
	r.stepNames(at, c.Handler.SQL.Steps)
	if r.set("handler.sql.intents") {
		r.refuse("handler.sql.intents", "with steps, intents are part of a step", "move it into a step")
	}
	if r.ok("strategy", "ack") {
		r.stepsKept()
	}
}

// stepsKept checks that a message can wait in the store between two steps.
func (r rules) stepsKept() {
	switch c := r.consumer; {
	case c.Strategy.BusinessKey != nil:
		r.refuse("strategy", "a violation of the business key in one step says nothing about the other steps", "write strategy: inbox, and use on conflict in the statement")
	case !c.Strategy.Inbox:
		r.refuse("strategy", "between two steps a message waits in its inbox row, but this strategy writes no rows", "write strategy: inbox, ack: after_receipt and alerts: {pending_age: 60s}")
	case !c.AckOnReceipt:
		r.refuse("ack", "with steps the message is stored before its first step, and any process can continue it; the broker would otherwise wait for the slowest step", "write ack: after_receipt and alerts: {pending_age: 60s}")
	}
}

func (r rules) stepNames(at string, all []SQLStep) {
	if len(all) > steplimit.Steps {
		r.refuse(at, fmt.Sprintf("there are %d steps", len(all)), fmt.Sprintf("write at most %d", steplimit.Steps))
	}
	for i, step := range all {
		if first := slices.IndexFunc(all, func(s SQLStep) bool { return s.Name == step.Name }); first < i {
			r.refuse(fmt.Sprintf("%s[%d].name", at, i), fmt.Sprintf("step %d is also named %s, but rows identify steps by name", first+1, step.Name), "use different names")
		}
	}
}
