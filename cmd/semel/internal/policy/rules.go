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

// rules checks the combinations of one consumer's keys.
type rules struct {
	*shape.Decoder
	consumer *Consumer
	// The field at is the consumer's path in the policy.
	at string
	// store is the consumer's store; nil if the policy has no store of that name.
	store *Store
}

// The method set reports whether the file has this key, valid or not.
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

// The rule largest warns if the source accepts larger messages than the consumer processes.
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
		r.FaultAt(at, fmt.Sprintf("it is more than max_body of consumer %[2]s, %[1]s, which limits the processed messages", shape.ShowSize(most), r.consumer.Name),
			"write at most "+shape.ShowSize(most)+", or raise max_body")
	case limit < most && r.set("max_body"):
		r.warn("max_body", fmt.Sprintf("%s already limits messages to %s", at, shape.ShowSize(limit)), "raise that too, or remove max_body")
	}
}

func (r rules) identity() {
	if !r.ok("identity", "strategy") {
		return
	}
	switch {
	case r.consumer.Sends(): // the identity of a message is that of its intent
	case !r.set("identity") && r.consumer.Strategy.Marks():
		r.refuse("identity", "this key is missing, so copies of a message cannot be recognised",
			`name a value that the producer sets once for each message, as identity: {id: "header:ce-id", source: "header:ce-source"}`)
	case !r.set("identity") && r.set("on_bad_identity"):
		r.warn("on_bad_identity", "no identity is declared, so this key has no effect", "remove it, or declare an identity")
	case r.set("identity"):
		c, of := r.consumer, r.consumer.Identity.selected()
		if id, why := of.Unfit(); why != "" {
			at := "identity.id"
			if !slices.Contains(c.Identity.ID, id) {
				at = "identity.source"
			}
			r.refuse(at, fmt.Sprintf("%q cannot be an identity: %s", id, why), "name a value that the producer sets once for each message, or write trusted: true beside it if this producer does")
		} else if reason, remedy := split(of.Validate(), "name a value that the producer sets once for each message"); reason != "" {
			r.refuse("identity.id", reason, remedy)
		} else if r.ok("fingerprint", "version") && of.KeyAlone() && c.Fingerprint.None && c.Version == nil && c.Strategy.Marks() {
			r.refuse("fingerprint", "messages with the same key could not be distinguished: all except the first would be dropped as duplicates", "write fingerprint: body, so that they are conflicts; or name a value that the producer sets once for each message, or a version")
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
		r.refuse("strategy", "natural keeps no records, but the other strategies do",
			"keep natural or the others")
	case s.Marker && s.Inbox:
		r.refuse("strategy", "inbox also writes a marker", "keep inbox alone")
	case s.Lease && (s.Marker || s.Inbox || s.BusinessKey != nil):
		r.refuse("strategy", "lease keeps its own markers and rows, and its calls are not part of a transaction that another strategy could use", "keep lease alone")
	case s.Natural == nil && !s.Marks() && s.BusinessKey == nil:
		r.refuse("strategy", "nothing makes the effect happen once", "write strategy: marker")
	}
}

// keepsFingerprint reports whether the strategy stores fingerprints. Only strategies with markers store
// fingerprints.
func (r rules) keepsFingerprint() bool { return r.consumer.Strategy.Marks() }

// fingerprint rejects settings about conflicts if the strategy stores no fingerprints. Without fingerprints
// no conflict can be found.
func (r rules) fingerprint() {
	c := r.consumer
	if !r.ok("strategy", "fingerprint", "on_conflict") {
		return
	}
	if !r.keepsFingerprint() {
		if r.set("fingerprint") && !c.Fingerprint.None {
			r.refuse("fingerprint", "this strategy writes no marker, and fingerprints are stored with markers",
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
		r.warn("on_conflict", "without a fingerprint no conflict is found: other content counts as a duplicate", "remove it, or write fingerprint: body")
	default:
		remedy := "remove it, or write fingerprint: body"
		if !c.Strategy.Marks() {
			remedy += " and strategy: marker"
		}
		r.refuse("on_conflict", "without a fingerprint no conflict is ever found", remedy)
	}
}

// The rule waits checks that the consumer's durations fit together.
func (r rules) waits() {
	c := r.consumer
	if r.ok("max_in_memory_wait", "retry") {
		r.retryWaits()
	}
	if c.Handler.outside() == nil && r.ok("drain", "timeout") && (c.Drain != consumer.Defaults().Drain || c.Timeout != consumer.Defaults().Timeout) && c.Drain < c.Timeout {
		r.warn("drain", fmt.Sprintf("a shutdown waits %s for a handler that may run for %s, and then abandons it", legible.Span(c.Drain), legible.Span(c.Timeout)),
			"raise drain to at least timeout; no message is lost either way")
	}
	if r.ok("batch", "timeout") && c.Batch.MaxTime > c.Timeout {
		r.warn("batch.max_time", "a batch may run longer than a handler", "lower it to at most timeout")
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
		r.refuse("retry.breaker_threshold", "the circuit breaker never opens with disable_breaker: true", "remove one of them")
	}
	if c.Retry.InitialDelay > c.Retry.MaxDelay {
		r.refuse("retry.initial_delay", fmt.Sprintf("the first wait, %s, is longer than max_delay, %s", legible.Span(c.Retry.InitialDelay), legible.Span(c.Retry.MaxDelay)),
			fmt.Sprintf("write at most %s", legible.Span(c.Retry.MaxDelay)))
	}
}

// retention reports retention settings without effect. Expired messages are recognised only if messages have
// a time and markers are removed.
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
		r.warn("on_expired", "no message is too old if markers are kept forever", "remove it, or set a retention such as 30d")
	case keep == 0 && (c.Retention.Delay > 0 || c.Retention.IDTime != identity.NoIDTime):
		r.warn("retention", "markers are kept forever, so the other keys have no effect", "write only forever, or a duration such as keep: 30d")
	case keep > 0 && c.Retention.Bodies >= keep && c.Retention.Bodies > 0:
		r.refuse("retention.bodies", "bodies would be kept longer than their messages", "write less than keep, or remove it")
	case keep > 0 && !c.Strategy.Marks():
		r.warn("retention", "this strategy writes no marker: only parked rows are kept", "remove it, or write strategy: marker")
	case keep > 0 && c.Version == nil && c.Retention.IDTime == identity.NoIDTime && s.timeless():
		r.refuse("retention", "messages of the source "+s.Name+" have no time, so messages that are too old cannot be recognised",
			"if their ids contain a time, write retention: {keep: 30d, id_time: uuidv7}; otherwise let the producer write CloudEvents with a time, or keep markers forever")
	}
}

// The rule days rejects daily partitions of markers for consumers that cannot have daily partitions. The rule
// returns true if it found a consumer that cannot have daily partitions.
func (r rules) days(store *Store) bool {
	c := r.consumer
	switch {
	case c.Strategy.Lease: // the rule leased reports this fault
		return false
	case c.Retention.Keep == 0 || c.Retention.IDTime == identity.NoIDTime:
		r.refuse("retention.daily_partitions", "days can only be dropped if ids contain a time and keep is a duration", "write keep: 30d and id_time: uuidv7 (or ulid, or snowflake), or remove it")
	case c.Dedup != nil || !c.Strategy.Marks():
		r.refuse("retention.daily_partitions", "daily partitions are a table of the consumer's own, but this consumer has no markers of its own", "remove it, or dedup, and write strategy: marker")
	case store != nil && store.SQLite != nil:
		r.refuse("retention.daily_partitions", fmt.Sprintf("daily partitions need PostgreSQL, but store %s is SQLite", store.Name), "remove it: SQLite removes markers in slices; or use a store in PostgreSQL")
	default:
		return false
	}
	return true
}

// timeless reports whether the messages of a source never have a time.
func (s *Source) timeless() bool {
	return s.once() || s != nil && s.File != nil && s.File.Format == "json"
}

// filter reports the key on_filtered if the consumer has no filter.
func (r rules) filter() {
	if r.ok("filter", "on_filtered") && r.set("on_filtered") && !r.set("filter") {
		r.refuse("on_filtered", "there is no filter, so no message is excluded", `add filter: {type: [TYPE]}, or remove it`)
	}
	if v := r.consumer.Version; v != nil && r.set("type") && r.ok("type", "version") && r.consumer.Type != "type" && v.by().UsesType() {
		r.refuse("type", "version uses the selector type, whose value this key would change", fmt.Sprintf("use %q in version too", r.consumer.Type))
	}
	if !r.ok("filter") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.consumer.Filter.Headers)) {
		if len(strings.Fields(name)) > 1 || strings.TrimSpace(name) != name {
			r.warn("filter."+headerCondition+name, fmt.Sprintf("the name %q contains a blank, which is unusual for a header; messages without this header are excluded", name),
				"check that the producer uses this name")
		}
	}
	if r.ok("handler") {
		r.filterTypes()
	}
}

// filterTypes compares the types in the filter with the types of the handlers. A handler for a type that the
// filter excludes never runs, so filterTypes reports a fault. A type without a handler may be intended: its
// messages are parked with the reason "unknown type".
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
			r.refuse("handler.types"+typePath(h.Type), fmt.Sprintf("this handler never runs, because filter excludes type %q", kind),
				fmt.Sprintf("add %q to filter, or remove the handler", kind))
		}
	}
	for i, kind := range in {
		if !handled[kind] {
			r.warn("filter.type", fmt.Sprintf("type %q is included but has no handler: its messages end with the reason \"unknown type\"", in[i]),
				"add a handler for it, or remove it here")
		}
	}
}

// filterCanMatch rejects filter conditions that no message of the source can meet. A condition that no
// message can meet would silently exclude all messages.
func (r rules) filterCanMatch(s *Source) {
	if s == nil || s.File == nil || !r.ok("filter", "type") || !r.Sound("sources."+s.Name+".file.format") {
		return
	}
	filter := r.consumer.Filter
	switch s.File.Format {
	case "json":
		nowhere := r.consumer.Type == "" || strings.HasPrefix(r.consumer.Type, headerCondition)
		if len(filter.Types) > 0 && nowhere || len(filter.Headers) > 0 {
			r.refuse("filter", fmt.Sprintf("source %s has the format json, whose messages have neither a type nor headers, so every message would be excluded", s.Name),
				"write format: cloudevents or format: envelope at the source, or type: body:/POINTER if the body contains the type, or remove filter")
		}
	case "cloudevents":
		for _, name := range slices.Sorted(maps.Keys(filter.Headers)) {
			if attribute := strings.ToLower(name); !strings.HasPrefix(attribute, "ce-") {
				r.warn("filter."+headerCondition+name, fmt.Sprintf("source %s has the format cloudevents, whose headers all begin with ce-, so every message is excluded", s.Name),
					"write header:ce- and the name of the attribute, such as header:ce-"+strings.TrimPrefix(attribute, "ce_"))
			}
		}
	}
}
