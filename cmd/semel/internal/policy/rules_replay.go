package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/legible"
)

// replayable are the kinds of effects whose messages may be replayed unless the file says
// otherwise: a second one does no harm.
func (k effectKind) replayable() bool {
	return k.kind == Projection || k.kind == Cache || k.kind == AuditCopy
}

// replay judges what a replay may do, and whether there may be one where the file does not
// say.
func (r rules) replay(from *Source) {
	c := r.consumer
	if !r.ok("replay", "effect", "handler", "strategy", "retention", "from") {
		return
	}
	out := c.Handler.outside()
	kind, known := c.Effect.known()
	if !r.set("replay.allowed") {
		c.Replay.Allowed = known && kind.replayable() && out == nil && !c.Sends() && !r.keyed() && !from.once()
	}
	switch {
	case c.Replay.Allowed && c.Sends():
		r.refuse("replay.allowed", "it has no source that could be read again: what it sends is written down by others", "remove it, and replay the consumers that write for it")
	case c.Replay.Allowed && from.once():
		r.refuse("replay.allowed", "webhooks cannot be read again: what came is in the inbox", "remove it; semel inbox retry runs a row again")
	case c.Replay.Allowed && r.keyed():
		r.refuse("replay.allowed", "store "+c.Store+" keeps keys for a time: it keeps no replays, and an old message would take effect again", "remove it, or use a database as store")
	case !c.Replay.Allowed && r.set("replay") && (r.set("replay.effects") || r.set("replay.max_age") || r.set("replay.looks")):
		r.warn("replay", "nothing is replayed, so that this says nothing", "write allowed: true beside it, or remove it")
	case c.Replay.Allowed:
		r.replayed(from)
	}
}

// replayed judges what a replay that is allowed may do.
func (r rules) replayed(from *Source) {
	c := r.consumer
	out := c.Handler.outside()
	switch {
	case c.Replay.Looks && out == nil:
		r.warn("replay.looks", "this consumer calls nobody who could look", "remove it")
	case c.Replay.Looks && c.Handler.Kafka != nil:
		r.refuse("replay.looks", "a topic looks at nothing: each message would be published", "write effects: real, or remove allowed")
	case c.Replay.Looks && c.Replay.Effects:
		r.warn("replay.looks", "effects are allowed, whoever looks", "remove it, or write effects: none")
	case out != nil && !c.Replay.Effects && !c.Replay.Looks:
		remedy := "write effects: real if a second call does no harm, or looks: true if the endpoint obeys the header semel-effects"
		if c.Handler.Kafka != nil {
			remedy = "write effects: real if a second record does no harm, or remove allowed"
		}
		r.refuse("replay.effects", "with none nothing may happen outside, and this consumer's handler is a call outside, which each replayed message would make", remedy)
	}
	if !r.set("replay.max_age") {
		c.Replay.MaxAge = c.Retention.Keep
		return
	}
	switch keep := c.Retention.Keep; {
	case keep > 0 && c.Replay.MaxAge > keep:
		r.refuse("replay.max_age", fmt.Sprintf("it is %s, and identities are recognised for %s (retention): a message between them would take effect again", legible.Span(c.Replay.MaxAge), legible.Span(keep)),
			"write at most "+legible.Span(keep)+", or raise retention")
	case from.timeless():
		r.refuse("replay.max_age", "messages of the source "+from.Name+" carry no time, by which old ones could be told", "remove it, or have the producer write CloudEvents with a time")
	}
}

// Replay says whether a consumer's messages may be replayed.
type Replay struct {
	Allowed bool
	// Effects: those outside of the store are allowed.
	Effects bool
	// MaxAge is how old a message may be that is replayed; 0: any.
	MaxAge time.Duration
	// Looks: what is called looks whether effects are allowed.
	Looks bool
}

// Oldest is when a message must have been sent at least to be replayed at this time; zero: any
// will do.
func (r *Replay) Oldest(now time.Time) time.Time {
	if r.MaxAge == 0 {
		return time.Time{}
	}
	return now.Add(-r.MaxAge)
}

// MayReplay says which rule refuses a replay of the consumer; nil if none does.
func (p *Policy) MayReplay(c *Consumer) *Fault {
	if c.Replay.Allowed {
		return nil
	}
	at := "consumers." + c.Name + ".replay.allowed"
	reason, remedy := "it is not written, and without an effect of the kind projection, cache or audit_copy that calls nobody no replay is allowed", "write replay: {allowed: true}"
	switch kind, known := c.Effect.known(); {
	case c.Sends():
		reason, remedy = "this consumer has no source that could be read again", "replay the consumers that write for it"
	case p.positions[at] != (position{}):
		reason, remedy = "it is false", "write true if a replay does no harm"
	case known && !kind.replayable():
		reason = fmt.Sprintf("it is not written, and an effect of the kind %s (%s) is replayed only where it is", kind.kind, kind.is)
	case known:
		reason = "it is not written, and a consumer that calls somebody is replayed only where it is"
	}
	if kind, known := c.Effect.known(); known && !kind.replayable() {
		remedy += "; a second one would do this: " + c.Effect.Says
	}
	f := p.Fault(at, reason, remedy)
	return &f
}
