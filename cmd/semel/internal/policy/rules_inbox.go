package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/steplimit"
)

// inbox judges what needs the store's inbox, and what needs none.
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
		r.refuse("strategy", "with lease the broker is settled when a message is received; nobody sees there how much waits, and no alert says how old it may become", "write alerts: {pending_age: 60s}")
	case c.AckOnReceipt:
		r.refuse("ack", "once the broker is settled nobody sees there how much waits, and no alert says how old it may become",
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

// keys warns of lanes by key where nothing keeps the order of keys.
func (r rules) keys(s *Source) {
	c := r.consumer
	if c.Lanes != consumer.LanesKey || !r.ok("lanes") {
		return
	}
	if r.ok("ack", "on_parked") && c.AckOnReceipt && !r.set("version") && c.OnParked == consumer.OnParkedSkip {
		r.warn("on_parked", "messages are received in order, and what is worked on from the inbox keeps none with skip", "write on_parked: block, or let version keep the order")
	}
	if s.once() {
		r.refuse("lanes", "webhooks have no key, so that no order would be kept", "write lanes: none, or let version keep the order")
	}
	if s != nil && s.File != nil && r.Sound("sources."+s.Name+".file.format") && s.File.Format != "envelope" {
		r.refuse("lanes", fmt.Sprintf("source %s has the format %s, whose lines have no key, so that no order would be kept", s.Name, s.File.Format),
			"write lanes: partition, or format: envelope at the source")
	}
}

// blocks judges what stands beside followers that wait.
func (r rules) blocks() {
	c := r.consumer
	if c.OnParked != consumer.OnParkedBlock || !r.ok("on_parked", "lanes", "strategy") {
		return
	}
	switch {
	case c.Lanes == consumer.LanesNone:
		r.refuse("on_parked", "lanes: none keeps no order that a message could wait for", "write lanes: key, or remove it")
	case !c.Strategy.Marks():
		r.refuse("on_parked", noInbox, "remove it, or write strategy: marker")
	case r.set("version"):
		r.refuse("on_parked", "a version that is parked keeps back the later ones of its stream, and no others, by itself", "remove it")
	}
}

// noInbox is why nothing of the consumer waits in its store.
const noInbox = "this strategy writes no marker, and only what has one can wait in the store"

// longWaits refuses waits that nothing could keep.
func (r rules) longWaits() {
	c := r.consumer
	if c.Retry.MaxDelay > c.MaxInMemoryWait && !c.Strategy.Marks() {
		r.refuse("retry.max_delay", fmt.Sprintf("a wait of %s is longer than max_in_memory_wait, %s, and cannot be kept: %s", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait), noInbox),
			fmt.Sprintf("write at most %s, or a longer max_in_memory_wait", legible.Span(c.MaxInMemoryWait)))
	}
}

// previous reports settings that cannot be combined with identity.previous.
func (r rules) previous() {
	c := r.consumer
	f := c.Identity.Previous
	if f == nil || !r.ok("identity", "strategy", "fingerprint", "version", "dedup", "retention") {
		return
	}
	const key, remove = "identity.previous", "remove it"
	switch {
	case !c.Strategy.Marks():
		r.refuse(key, "this strategy writes no marker, so that nothing is marked under another identity", remove)
	case selected(f.ID, f.Source).Derivation() == selected(c.Identity.ID, c.Identity.Source).Derivation():
		r.refuse(key, "it is what the identity is now", "write what it was before, or remove it")
	case c.Fingerprint.None:
		r.refuse(key, "without a fingerprint several messages that had one former identity cannot be told from copies, and all but one would be lost", "write fingerprint: body")
	case c.Version != nil:
		r.refuse(key, "the streams of another identity begin anew, and their versions would be judged twice", "remove it, or version; a consumer of another name can begin where this one has ended")
	case c.Retention.DailyPartitions:
		r.refuse(key, "markers by day have the ids of one identity", "remove it, or retention.daily_partitions")
	case r.set("dedup"):
		r.refuse(key, "a table that was adopted keeps the ids of one identity", "remove it, or dedup; semel migrate seed takes over the ids of such a table")
	}
	if reason, remedy := split(selected(f.ID, f.Source).Validate(), "write what identity.id was before"); reason != "" {
		r.refuse(key, reason, remedy)
	}
}

// exclusive needs what tells one service from another.
func (r rules) exclusive() {
	if r.consumer.Exclusive && r.ok("handler") && r.consumer.owner() == "" {
		r.refuse("exclusive", "the handler is one for all messages, and nothing of it tells this service from another", "write handler: {types: …}, or remove it")
	}
}

// version judges what stands beside versions.
func (r rules) version() {
	v := r.consumer.Version
	if v == nil || !r.ok("version") {
		return
	}
	if reason, remedy := split(v.by().Validate(), "write version: {stream: \"body:/order\", number: \"body:/version\"}"); reason != "" {
		r.refuse("version", reason, remedy)
	}
	if r.ok("strategy") && !r.consumer.Strategy.Marks() {
		r.refuse("version", noInbox+": a version whose predecessor is missing could not", "remove it, or write strategy: marker")
	}
	if r.set("dedup") {
		r.refuse("version", "a table that was adopted keeps no streams, and other code that marks in it would move none", "remove it, or dedup; semel migrate seed takes over the ids of such a table")
	}
	if v.Start.FirstSeen {
		r.warn("version.start", "a version that comes later and is smaller than the first that was met is discarded", "write the version that streams begin with, if their beginnings are all in the source")
	}
}

// dedup judges an adopted table.
func (r rules) dedup(p *Policy) {
	c := r.consumer
	if c.Dedup == nil || !r.ok("dedup", "strategy", "identity") {
		return
	}
	if !c.Strategy.Marks() {
		r.refuse("dedup", "this strategy writes no marker, which is what the table would hold", "remove it, or write strategy: marker")
		return
	}
	if s := p.Store(c.Store); s != nil && s.Postgres == nil {
		r.refuse("dedup", "only a table in PostgreSQL can be adopted", "seed its ids instead: semel migrate seed")
	}
	if _, constant := c.Identity.ConstantSource(); !constant && c.Dedup.Columns.Source == "" {
		r.refuse("dedup.columns", fmt.Sprintf("the table has no column for the source, and messages have theirs at %s: one source would hide the messages of another", c.Identity.Source),
			"name the column, as source: origin, or let identity.source be a constant, as \"const:shop\"")
	}
	r.sharing(p)
}

// sharing refuses what one of two consumers would take for its own.
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
			r.refuse("dedup.table", fmt.Sprintf("consumer %s has this table too, and no column tells the two apart: what one applied the other would skip", other.Name),
				"name the column at both, as columns: {consumer: handler}, or use another table")
		case mine.named(r.consumer.Name) == theirs.named(other.Name):
			r.refuse("dedup.values", fmt.Sprintf("consumer %s has the same value in this table: what one applied the other would skip", other.Name),
				"give each its own")
		}
	}
}

// named is what the column for the consumer says.
func (t *Dedup) named(consumer string) string {
	if value, ok := t.Values[t.Columns.Consumer]; ok {
		return value
	}
	return consumer
}

// steps judges a handler that is made of steps.
func (r rules) steps() {
	c := r.consumer
	for _, h := range c.Handler.Types {
		if h.SQL != nil && h.SQL.Steps != nil {
			r.refuse("handler.types"+typePath(h.Type)+".sql.steps", "the steps of a consumer are one list for all of its messages",
				"give this type a consumer of its own, with filter: {type: …} and handler: {sql: {steps: …}}")
		}
	}
	const at = "handler.sql.steps"
	if c.Handler.SQL == nil || c.Handler.SQL.Steps == nil || !r.ok("handler.sql") {
		return
	}
	r.stepNames(at, c.Handler.SQL.Steps)
	if r.set("handler.sql.intents") {
		r.refuse("handler.sql.intents", "with steps an intent is written down with the step that it belongs to", "move it into a step")
	}
	if r.ok("strategy", "ack") {
		r.stepsKept()
	}
}

// stepsKept judges where a message stands between two steps.
func (r rules) stepsKept() {
	switch c := r.consumer; {
	case c.Strategy.BusinessKey != nil:
		r.refuse("strategy", "a business key that one step meets says nothing of the others", "write strategy: inbox, and let a statement meet the key with on conflict")
	case !c.Strategy.Inbox:
		r.refuse("strategy", "between two steps a message waits in its row of the inbox, and this strategy keeps none", "write strategy: inbox, ack: after_receipt and alerts: {pending_age: 60s}")
	case !c.AckOnReceipt:
		r.refuse("ack", "with steps the message is in the store from its first step on, and whoever claims it there goes on; a broker that keeps it as well would wait for its slowest step, and let go of it with the first retry that is longer than max_in_memory_wait", "write ack: after_receipt and alerts: {pending_age: 60s}")
	}
}

func (r rules) stepNames(at string, all []SQLStep) {
	if len(all) > steplimit.Steps {
		r.refuse(at, fmt.Sprintf("there are %d steps", len(all)), fmt.Sprintf("write at most %d", steplimit.Steps))
	}
	for i, step := range all {
		if first := slices.IndexFunc(all, func(s SQLStep) bool { return s.Name == step.Name }); first < i {
			r.refuse(fmt.Sprintf("%s[%d].name", at, i), fmt.Sprintf("step %d is named %s, too, and a row knows a step by its name", first+1, step.Name), "give each a name of its own")
		}
	}
}
