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

// rulePath is a part of the policy. Rules name keys by paths relative to the field at.
type rulePath struct {
	*shape.Decoder
	path string
}

// isSet reports whether the file has this key, valid or not.
func (p rulePath) isSet(key string) bool { return p.Given(p.path + "." + key) }

// isValid reports whether none of the keys has a fault.
func (p rulePath) isValid(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !p.Sound(p.path + "." + key) })
}

func (p rulePath) refuse(key, reason, remedy string) { p.FaultAt(p.path+"."+key, reason, remedy) }

// refuseIf reports a fault if broken is true, and returns broken.
func (p rulePath) refuseIf(broken bool, key, reason, remedy string) bool {
	if broken {
		p.refuse(key, reason, remedy)
	}
	return broken
}

// warnIf reports a warning if unusual is true, and returns unusual.
func (p rulePath) warnIf(unusual bool, key, reason, remedy string) bool {
	if unusual {
		p.WarnAt(p.path+"."+key, reason, remedy)
	}
	return unusual
}

// rules checks the combinations of one consumer's keys.
type rules struct {
	rulePath
	consumer *Consumer
	// store is the consumer's store; nil if the policy has no store of that name.
	store *Store
}

func (r rules) checkReferences(p *Policy) {
	c := r.consumer
	if c.From != "" && r.isValid("from") && p.Source(c.From) == nil {
		known := namesOf(p.Sources, func(s *Source) string { return s.Name })
		r.refuse("from", fmt.Sprintf("there is no source %q", c.From), unknownName(c.From, "sources", known))
	}
	if c.Store != "" && r.isValid("store") && p.Store(c.Store) == nil {
		known := namesOf(p.Stores, func(s *Store) string { return s.Name })
		r.refuse("store", fmt.Sprintf("there is no store %q", c.Store), unknownName(c.Store, "stores", known))
	}
}

// checkMaxBody warns if the source accepts larger messages than the consumer processes.
func (r rules) checkMaxBody(s *Source) {
	if s == nil || !r.isValid("max_body") {
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
	case r.warnIf(limit < most && r.isSet("max_body"), "max_body", fmt.Sprintf("%s already limits messages to %s", at, shape.ShowSize(limit)), "raise that too, or remove max_body"):
	}
}

func (r rules) checkIdentity() {
	if !r.isValid("identity", "strategy") {
		return
	}
	switch {
	case r.consumer.Sends(): // a sender's messages have the identity of their intents
	case r.warnIf(!r.isSet("identity") && !r.consumer.Strategy.Marks() && r.isSet("on_bad_identity"), "on_bad_identity", "no identity is declared, so this key has no effect", "remove it, or declare an identity"):
	case r.isSet("identity"):
		c, of := r.consumer, r.consumer.Identity.selectedIdentity()
		if id, why := of.Unfit(); why != "" {
			at := "identity.id"
			if !slices.Contains(c.Identity.ID, id) {
				at = "identity.source"
			}
			r.refuse(at, fmt.Sprintf("%q cannot be an identity: %s", id, why), "name a value that the producer sets once for each message, or write trusted: true beside it if this producer does")
		} else if reason, remedy := split(of.Validate(), "name a value that the producer sets once for each message"); reason != "" {
			r.refuse("identity.id", reason, remedy)
		}
	}
}

func (r rules) checkStrategy() {
	s := r.consumer.Strategy
	if !r.isValid("strategy") {
		return
	}
	switch {
	case r.refuseIf(s.Natural != nil && (s.Marks() || s.BusinessKey != nil), "strategy", "natural keeps no records, but the other strategies do", "keep natural or the others"):
	case r.refuseIf(s.Marker && s.Inbox, "strategy", "inbox also writes a marker", "keep inbox alone"):
	case r.refuseIf(s.Lease && (s.Marker || s.Inbox || s.BusinessKey != nil), "strategy", "lease keeps its own markers and rows, and its calls are not part of a transaction that another strategy could use", "keep lease alone"):
	case r.refuseIf(s.Natural == nil && !s.Marks() && s.BusinessKey == nil, "strategy", "nothing makes the effect happen once", "write strategy: marker"):
	}
}

// checkFingerprint rejects settings about conflicts if the strategy stores no fingerprints, which are stored with
// markers. Without fingerprints no conflict can be found.
func (r rules) checkFingerprint() {
	c := r.consumer
	if !r.isValid("strategy", "fingerprint", "on_conflict") {
		return
	}
	remedy := "remove it, or write fingerprint: body"
	if !c.Strategy.Marks() {
		remedy += " and strategy: marker"
		r.refuseIf(r.isSet("fingerprint") && !c.Fingerprint.None, "fingerprint", "this strategy writes no marker, and fingerprints are stored with markers", "remove it, or write strategy: marker")
		c.Fingerprint = Fingerprint{None: true}
	}
	if c.Fingerprint.None && r.isSet("on_conflict") {
		switch {
		case r.warnIf(c.OnConflict == consumer.ActionKeepFirst, "on_conflict", "without a fingerprint no conflict is found: other content counts as a duplicate", "remove it, or write fingerprint: body"):
		case r.refuseIf(true, "on_conflict", "without a fingerprint no conflict is ever found", remedy):
		}
	}
}

// checkDurations sets the defaults of delays, and warns about durations that do not fit together.
func (r rules) checkDurations() {
	c := r.consumer
	if !r.isSet("retry.max_delay") {
		c.Retry.MaxDelay = c.MaxInMemoryWait
	}
	if !r.isSet("retry.initial_delay") {
		c.Retry.InitialDelay = min(c.Retry.InitialDelay, c.Retry.MaxDelay)
	}
	standard := consumer.Defaults()
	r.warnIf(c.Handler.outsideCall() == nil && r.isValid("drain", "timeout") && (c.Drain != standard.Drain || c.Timeout != standard.Timeout) && c.Drain < c.Timeout, "drain",
		fmt.Sprintf("a shutdown waits %s for a handler that may run for %s, and then abandons it", legible.Span(c.Drain), legible.Span(c.Timeout)), "raise drain to at least timeout; no message is lost either way")
	r.warnIf(r.isValid("batch", "timeout") && c.Batch.MaxTime > c.Timeout, "batch.max_time", "a batch may run longer than a handler", "lower it to at most timeout")
}

// checkRetention reports retention settings without effect. Expired messages are recognised only if messages have
// a time and markers are removed.
func (r rules) checkRetention(s *Source, store *Store) {
	c := r.consumer
	if r.usesKeyStore() || !r.isValid("retention", "on_expired", "strategy") {
		return
	}
	r.refuseIf(c.Retention.DailyPartitions && c.Identity.Previous != nil && r.isValid("identity"), "identity.previous", "daily partitions of markers have the ids of only one identity", "remove it, or retention.daily_partitions")
	if c.Retention.DailyPartitions && r.checkDailyPartitions(store) {
		return
	}
	keep, idTime := c.Retention.Keep, c.Retention.IDTime != identity.NoIDTime
	switch {
	case r.warnIf(keep == 0 && r.isSet("on_expired"), "on_expired", "no message is too old if markers are kept forever", "remove it, or set a retention such as 30d"):
	case r.warnIf(keep == 0 && (c.Retention.Delay > 0 || idTime), "retention", "markers are kept forever, so the other keys have no effect", "write only forever, or a duration such as keep: 30d"):
	case r.warnIf(keep > 0 && !c.Strategy.Marks(), "retention", "this strategy writes no marker: only parked rows are kept", "remove it, or write strategy: marker"):
	case r.refuseIf(keep > 0 && c.Version == nil && !idTime && s.hasNoTime(), "retention", "messages of the source "+s.name()+" have no time, so messages that are too old cannot be recognised",
		"if their ids contain a time, write retention: {keep: 30d, id_time: uuidv7}; otherwise let the producer write CloudEvents with a time, or keep markers forever"):
	}
}

// checkDailyPartitions rejects daily partitions of markers for consumers that cannot have daily partitions.
// checkDailyPartitions returns true if it found a consumer that cannot have daily partitions.
func (r rules) checkDailyPartitions(store *Store) bool {
	c := r.consumer
	const key = "retention.daily_partitions"
	return !c.Strategy.Lease && // checkCalls reports strategy lease
		(r.refuseIf(c.Retention.Keep == 0 || c.Retention.IDTime == identity.NoIDTime, key, "days can only be dropped if ids contain a time and keep is a duration", "write keep: 30d and id_time: uuidv7 (or ulid, or snowflake), or remove it") ||
			r.refuseIf(c.Dedup != nil || !c.Strategy.Marks(), key, "daily partitions are a table of the consumer's own, but this consumer has no markers of its own", "remove it, or dedup, and write strategy: marker") ||
			r.refuseIf(store != nil && store.SQLite != nil, key, "daily partitions need PostgreSQL, but store "+c.Store+" is SQLite", "remove it: SQLite removes markers in slices; or use a store in PostgreSQL"))
}

func (s *Source) name() string {
	if s == nil {
		return ""
	}
	return s.Name
}

// hasNoTime reports whether the messages of a source never have a time.
func (s *Source) hasNoTime() bool {
	return s.deliversOnce() || s != nil && s.File != nil && s.File.Format == "json"
}

// checkFilter reports the key on_filtered if the consumer has no filter.
func (r rules) checkFilter() {
	r.refuseIf(r.isValid("filter", "on_filtered") && r.isSet("on_filtered") && !r.isSet("filter"), "on_filtered", "there is no filter, so no message is excluded", `add filter: {type: [TYPE]}, or remove it`)
	if !r.isValid("filter") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.consumer.Filter.Headers)) {
		r.warnIf(len(strings.Fields(name)) > 1 || strings.TrimSpace(name) != name, "filter."+headerCondition+name, fmt.Sprintf("the name %q contains a blank, which is unusual for a header; messages without this header are excluded", name),
			"check that the producer uses this name")
	}
	if r.isValid("handler") {
		r.checkFilterTypes()
	}
}

// checkFilterTypes compares the types in the filter with the types of the handlers. A handler for a type that the
// filter excludes never runs, so checkFilterTypes reports a fault. A type without a handler may be intended: its
// messages are parked with the reason "unknown type".
func (r rules) checkFilterTypes() {
	in, handlers := r.consumer.Filter.Types, r.consumer.Handler.Types
	if len(in) == 0 || len(handlers) == 0 {
		return
	}
	handled := map[string]bool{}
	for _, h := range handlers {
		kind, _, _ := strings.Cut(h.Type, "@")
		handled[kind], handled[h.Type] = true, true
		r.refuseIf(!slices.Contains(in, kind) && !slices.Contains(in, h.Type), "handler.types"+typePath(h.Type), fmt.Sprintf("this handler never runs, because filter excludes type %q", kind),
			fmt.Sprintf("add %q to filter, or remove the handler", kind))
	}
	for i, kind := range in {
		r.warnIf(!handled[kind], "filter.type", fmt.Sprintf("type %q is included but has no handler: its messages end with the reason \"unknown type\"", in[i]),
			"add a handler for it, or remove it here")
	}
}

// checkFilterMatch rejects filter conditions that no message of the source can meet, and handlers by type if no
// message of the source has a type. A condition that no message can meet would silently exclude all messages.
func (r rules) checkFilterMatch(s *Source) {
	if s == nil || s.File == nil || !r.isValid("filter", "type") || !r.Sound("sources."+s.Name+".file.format") {
		return
	}
	filter := r.consumer.Filter
	switch s.File.Format {
	case "json":
		nowhere := r.consumer.Type == "" || strings.HasPrefix(r.consumer.Type, headerCondition)
		r.refuseIf(len(filter.Types) > 0 && nowhere || len(filter.Headers) > 0, "filter", fmt.Sprintf("source %s has the format json, whose messages have neither a type nor headers, so every message would be excluded", s.Name),
			"write format: cloudevents or format: envelope at the source, or type: body:/POINTER if the body contains the type, or remove filter")
		r.refuseIf(r.isValid("handler") && len(r.consumer.Handler.Types) > 0 && nowhere, "handler.types", fmt.Sprintf("source %s has the format json, whose messages have no type, so no handler would ever run", s.Name),
			"write type: body:/type under "+r.path+", with the place of the type in the body; or format: cloudevents or format: envelope at the source")
	case "cloudevents":
		for _, name := range slices.Sorted(maps.Keys(filter.Headers)) {
			attribute := strings.ToLower(name)
			r.warnIf(!strings.HasPrefix(attribute, "ce-"), "filter."+headerCondition+name, fmt.Sprintf("source %s has the format cloudevents, whose headers all begin with ce-, so every message is excluded", s.Name),
				"write header:ce- and the name of the attribute, such as header:ce-"+strings.TrimPrefix(attribute, "ce_"))
		}
	}
}
