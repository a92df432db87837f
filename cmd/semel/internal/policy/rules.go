package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// rules judge the combinations of one consumer's keys.
type rules struct {
	*shape.Decoder
	consumer *Consumer
	// at is the consumer's path.
	at string
	// store is the consumer's; nil if there is none of its name.
	store *Store
}

// set reports whether the file gives this key, rightly or wrongly.
func (r rules) set(key string) bool { return r.Given(r.at + "." + key) }

func (r rules) ok(keys ...string) bool {
	for _, key := range keys {
		if !r.Sound(r.at + "." + key) {
			return false
		}
	}
	return true
}

func (r rules) refuse(key, reason, remedy string) { r.FaultAt(r.at+"."+key, reason, remedy) }
func (r rules) warn(key, reason, remedy string)   { r.WarnAt(r.at+"."+key, reason, remedy) }

func (r rules) references(p *Policy) {
	c := r.consumer
	if c.From != "" && r.ok("from") && p.Source(c.From) == nil {
		known := namesOf(p.Sources, func(s *Source) string { return s.Name })
		r.refuse("from", fmt.Sprintf("there is no source %q", c.From), unknownName(c.From, "sources", known))
	}
	if c.Store != "" && r.ok("store") && p.Store(c.Store) == nil {
		known := namesOf(p.Stores, func(s *Store) string { return s.Name })
		r.refuse("store", fmt.Sprintf("there is no store %q", c.Store), unknownName(c.Store, "stores", known))
	}
}

// largest: what a source takes and no consumer processes is read for nothing.
func (r rules) largest(s *Source) {
	if s == nil || !r.ok("max_body") {
		return
	}
	at, limit := "sources."+s.Name+".kafka.max_record", int64(0)
	switch {
	case s.Kafka != nil:
		limit = s.Kafka.MaxRecord
	case s.Webhook != nil:
		at, limit = "sources."+s.Name+".webhook.max_body", s.Webhook.MaxBody
	case s.File != nil:
		at, limit = "sources."+s.Name+".file.max_line", s.File.MaxLine
	}
	most := r.consumer.MaxBody
	switch {
	case limit == 0 || !r.Sound(at):
	case limit > most && r.Given(at):
		r.FaultAt(at, fmt.Sprintf("it is more than the %s of max_body at consumer %s, over which nothing is processed", shape.ShowSize(most), r.consumer.Name),
			"write at most "+shape.ShowSize(most)+", or raise max_body")
	case limit < most && r.set("max_body"):
		r.warn("max_body", fmt.Sprintf("%s bounds what arrives to %s already", at, shape.ShowSize(limit)), "raise that, too, or remove max_body")
	}
}

func (r rules) identity() {
	if !r.ok("identity", "strategy") {
		return
	}
	switch {
	case r.consumer.Sends(): // which has that of its intents
	case !r.set("identity") && r.consumer.Strategy.Marks():
		r.refuse("identity", "this key is missing: nothing says which deliveries are copies of one message",
			`name what the producer sets once for a message, as identity: {id: "header:ce-id", source: "header:ce-source"}`)
	case !r.set("identity") && r.set("on_bad_identity"):
		r.warn("on_bad_identity", "no identity is declared, so none can be bad", "remove it, or declare an identity")
	case r.set("identity"):
		c, of := r.consumer, r.consumer.Identity.selected()
		if id, why := of.Unfit(); why != "" {
			at := "identity.id"
			if !slices.Contains(c.Identity.ID, id) {
				at = "identity.source"
			}
			r.refuse(at, fmt.Sprintf("%q cannot be an identity: %s", id, why), "name what the producer sets once for a message, or write trusted: true beside it if this producer does")
		} else if reason, remedy := split(of.Validate(), "name what the producer sets once for a message"); reason != "" {
			r.refuse("identity.id", reason, remedy)
		} else if r.ok("fingerprint", "version") && of.KeyAlone() && c.Fingerprint.None && c.Version == nil && c.Strategy.Marks() {
			r.refuse("fingerprint", "messages of one key are told apart by nothing: all but the first would be dropped as duplicates", "write fingerprint: body, so that they are conflicts; or name what the producer sets once for a message, or a version")
		}
	}
}

func (r rules) strategy() {
	s := r.consumer.Strategy
	if !r.ok("strategy") {
		return
	}
	switch {
	case s.Natural != nil && (s.Marks() || s.BusinessKey != nil):
		r.refuse("strategy", "natural says that nothing need be kept, and stands beside what keeps something",
			"keep natural, or the others")
	case s.Marker && s.Inbox:
		r.refuse("strategy", "inbox writes a marker, too", "keep inbox alone")
	case s.Lease && (s.Marker || s.Inbox || s.BusinessKey != nil):
		r.refuse("strategy", "lease keeps markers and rows of its own, and its calls are no part of a transaction that another guard could be in", "keep lease alone")
	case s.Natural == nil && !s.Marks() && s.BusinessKey == nil:
		r.refuse("strategy", "nothing makes the effect happen once", "write strategy: marker")
	}
}

// keepsFingerprint: only a marker has a place for it.
func (r rules) keepsFingerprint() bool { return r.consumer.Strategy.Marks() }

// fingerprint: a strategy or policy that keeps none finds no conflicts, and
// must not look as if it did.
func (r rules) fingerprint() {
	c := r.consumer
	if !r.ok("strategy", "fingerprint", "on_conflict") {
		return
	}
	if !r.keepsFingerprint() {
		if r.set("fingerprint") && !c.Fingerprint.None {
			r.refuse("fingerprint", "this strategy writes no marker, which is where a fingerprint is kept",
				"remove it, or write strategy: marker")
		}
		c.Fingerprint = Fingerprint{None: true}
	}
	if reason, remedy := split(c.Fingerprint.fingerprinter().Validate(), "name fields of the body"); reason != "" {
		r.refuse("fingerprint", reason, remedy)
	}
	switch {
	case !c.Fingerprint.None || !r.set("on_conflict"):
	case c.OnConflict == consumer.ActionKeepFirst:
		r.warn("on_conflict", "without a fingerprint no conflict is found: every copy is a duplicate already", "remove it, or write fingerprint: body")
	default:
		remedy := "remove it, or write fingerprint: body"
		if !c.Strategy.Marks() {
			remedy += " and strategy: marker"
		}
		r.refuse("on_conflict", "without a fingerprint no conflict is ever found", remedy)
	}
}

// waits judges durations against one another.
func (r rules) waits() {
	c := r.consumer
	if r.ok("max_in_memory_wait", "retry") {
		r.retryWaits()
	}
	if c.Handler.outside() == nil && r.ok("drain", "timeout") && (c.Drain != consumer.Defaults().Drain || c.Timeout != consumer.Defaults().Timeout) && c.Drain < c.Timeout {
		r.warn("drain", fmt.Sprintf("a stop waits %s for a handler that may run %s, and then abandons it", legible.Span(c.Drain), legible.Span(c.Timeout)),
			"let drain be at least timeout; nothing is lost either way")
	}
	if r.ok("batch", "timeout") && c.Batch.MaxTime > c.Timeout {
		r.warn("batch.max_time", "a batch may run longer than a handler", "let it be at most timeout")
	}
}

func (r rules) retryWaits() {
	c := r.consumer
	if !r.set("retry.max_delay") {
		c.Retry.MaxDelay = c.MaxInMemoryWait
	}
	if !r.set("retry.initial_delay") {
		c.Retry.InitialDelay = min(c.Retry.InitialDelay, c.Retry.MaxDelay)
	}
	if r.ok("strategy") {
		r.longWaits()
	}
	if c.Retry.DisableBreaker && c.Retry.BreakerThreshold > 0 {
		r.refuse("retry.breaker_threshold", "the circuit breaker never opens beside disable_breaker: true", "remove one of them")
	}
	if c.Retry.InitialDelay > c.Retry.MaxDelay {
		r.refuse("retry.initial_delay", fmt.Sprintf("the first wait, %s, is longer than the longest, %s", legible.Span(c.Retry.InitialDelay), legible.Span(c.Retry.MaxDelay)),
			fmt.Sprintf("write at most %s", legible.Span(c.Retry.MaxDelay)))
	}
}

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

// filter reports on_filtered without a filter: nothing is filtered then.
func (r rules) filter() {
	if r.ok("filter", "on_filtered") && r.set("on_filtered") && !r.set("filter") {
		r.refuse("on_filtered", "nothing says which messages are others", `add filter: {type: [TYPE]}, or remove it`)
	}
	if v := r.consumer.Version; v != nil && r.set("type") && r.ok("type", "version") && r.consumer.Type != "type" && v.by().UsesType() {
		r.refuse("type", "version names the selector type, which would change with it", fmt.Sprintf("name %q in version, too", r.consumer.Type))
	}
	if !r.ok("filter") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.consumer.Filter.Headers)) {
		if len(strings.Fields(name)) > 1 || strings.TrimSpace(name) != name {
			r.warn("filter."+headerCondition+name, fmt.Sprintf("the name %q has a blank, which few producers give to a header; a message without it is somebody else's", name),
				"see that the producer writes it so")
		}
	}
	if r.ok("handler") {
		r.filterTypes()
	}
}

// filterTypes compares the types of filter with those of the handlers. A handler whose type the
// filter excludes never runs, which is a fault. A type without a handler may be intended: its
// messages are parked as unknown_type.
func (r rules) filterTypes() {
	in, handlers := r.consumer.Filter.Types, r.consumer.Handler.Types
	if len(in) == 0 || len(handlers) == 0 {
		return
	}
	handled := map[string]bool{}
	for _, h := range handlers {
		kind, _, _ := strings.Cut(h.Type, "@")
		handled[kind], handled[h.Type] = true, true
		if !slices.Contains(in, kind) && !slices.Contains(in, h.Type) {
			r.refuse("handler.types"+typePath(h.Type), fmt.Sprintf("this handler never runs: filter lets in no message of type %q", kind),
				fmt.Sprintf("add %q to filter, or remove the handler", kind))
		}
	}
	for i, kind := range in {
		if !handled[kind] {
			r.warn("filter.type", fmt.Sprintf("type %q is let in and has no handler: its messages end as unknown_type", in[i]),
				"add a handler for it, or remove it here")
		}
	}
}

// filterCanMatch: a condition that no message of the source can meet leaves out
// all of them, and nothing is said of a message that is left out.
func (r rules) filterCanMatch(s *Source) {
	if s == nil || s.File == nil || !r.ok("filter", "type") || !r.Sound("sources."+s.Name+".file.format") {
		return
	}
	filter := r.consumer.Filter
	switch s.File.Format {
	case "json":
		nowhere := r.consumer.Type == "" || strings.HasPrefix(r.consumer.Type, headerCondition)
		if len(filter.Types) > 0 && nowhere || len(filter.Headers) > 0 {
			r.refuse("filter", fmt.Sprintf("source %s has the format json, whose lines are bodies and have neither a type nor headers, so that every message would be left out", s.Name),
				"write format: cloudevents or format: envelope at the source, or type: body:/POINTER if the body says the type, or remove filter")
		}
	case "cloudevents":
		for _, name := range slices.Sorted(maps.Keys(filter.Headers)) {
			if attribute := strings.ToLower(name); !strings.HasPrefix(attribute, "ce-") {
				r.warn("filter."+headerCondition+name, fmt.Sprintf("source %s has the format cloudevents, whose headers all begin with ce-, so that every message is left out", s.Name),
					"write header:ce- and the name of the attribute, as header:ce-"+strings.TrimPrefix(attribute, "ce_"))
			}
		}
	}
}
