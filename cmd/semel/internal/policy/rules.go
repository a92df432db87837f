package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// rules judge the combinations of one consumer's keys.
type rules struct {
	*decoder
	consumer *Consumer
	// at is the consumer's path.
	at string
	// store is the consumer's; nil if there is none of its name.
	store *Store
}

// set reports whether the file gives this key, rightly or wrongly.
func (r rules) set(key string) bool { return r.given(r.at + "." + key) }

func (r rules) ok(keys ...string) bool {
	for _, key := range keys {
		if !r.sound(r.at + "." + key) {
			return false
		}
	}
	return true
}

func (r rules) refuse(key, reason, remedy string) { r.faultAt(r.at+"."+key, reason, remedy) }
func (r rules) warn(key, reason, remedy string)   { r.warnAt(r.at+"."+key, reason, remedy) }

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
	case limit == 0 || !r.sound(at):
	case limit > most && r.given(at):
		r.faultAt(at, fmt.Sprintf("it is more than the %s of max_body at consumer %s, over which nothing is processed", showSize(most), r.consumer.Name),
			"write at most "+showSize(most)+", or raise max_body")
	case limit < most && r.set("max_body"):
		r.warn("max_body", fmt.Sprintf("%s bounds what arrives to %s already", at, showSize(limit)), "raise that, too, or remove max_body")
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
	if c.Handler.outside() == nil && r.ok("drain", "timeout") && (c.Drain != consumer.DefaultDrain || c.Timeout != consumer.DefaultTimeout) && c.Drain < c.Timeout {
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
