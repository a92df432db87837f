package policy

import (
	"fmt"
	"time"
)

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
