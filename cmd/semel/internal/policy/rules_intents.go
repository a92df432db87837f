package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/consumer"
)

// Sends reports whether the consumer sends intents. A sender has no source: other consumers write intents to
// the sender's inbox.
func (c *Consumer) Sends() bool { return c.From == "" }

// checkSender checks a consumer that sends intents.
func (r rules) checkSender() {
	c := r.consumer
	if !r.isValid("from", "strategy") {
		return
	}
	if !c.Sends() || r.refuseIf(!c.Strategy.Lease, "from", "this key is missing", "add from: the name of a source; only a consumer with strategy: lease, which sends intents, has none") {
		return
	}
	for _, key := range []string{"filter", "on_filtered", "identity", "dead_letter", "ack", "max_unacked"} {
		r.refuseIf(r.isSet(key), key, "a consumer without from sends intents that others write, and reads no source that this key could apply to", "remove it, or add from: the name of a source")
	}
	if r.isValid("retry", "on_conflict", "on_bad_identity", "on_precondition", "on_expired", "on_filtered") {
		r.refuseAll(r.deadLetterEndings(), "a consumer without from has no dead letters", "write park: the intent stays in the store")
	}
	c.Identity = Identity{ID: []string{"id"}, Source: "source"}
}

// checkIntents checks the intents that the consumer's SQL handlers write.
func (r rules) checkIntents(p *Policy) {
	purposes := map[string]bool{}
	for _, h := range r.consumer.Handlers() {
		for i, n := range h.Intents {
			key := fmt.Sprintf("%s.intents[%d]", h.At, i)
			if !r.isValid(key) {
				continue
			}
			r.checkRecipient(p, key+".to", n.To)
			same := fmt.Sprintf("%q %q %q %q", h.ParamsAt, n.To, n.Purpose, n.Recipient)
			r.refuseIf(purposes[same], key+".purpose", "another intent of this handler has the same purpose and recipient, so both would have the same id", "use different purposes")
			purposes[same] = true
		}
	}
}

// checkRecipient checks the name of the consumer that sends an intent.
func (r rules) checkRecipient(p *Policy, key, name string) {
	var senders []string
	for _, c := range p.Consumers {
		if c.Sends() {
			senders = append(senders, c.Name)
		}
	}
	switch to := p.Consumer(name); {
	case r.refuseIf(to == nil, key, fmt.Sprintf("there is no consumer %q", name), unknownName(name, "consumers without from", senders)):
	case r.refuseIf(!to.Sends(), key, fmt.Sprintf("consumer %s reads source %s and does not send intents", name, to.From), "name a consumer without from, with strategy: lease"):
	case r.refuseIf(to.Store != r.consumer.Store, key, fmt.Sprintf("consumer %s uses store %s, but the intent is written to store %s, in the transaction of its message", name, to.Store, r.consumer.Store), "use the same store for both"):
	}
}

// recipients returns the senders for which the consumer writes intents, and the policy key that names each
// sender.
func (c *Consumer) recipients() (names, keys []string) {
	add := func(key, name string) {
		if !slices.Contains(names, name) {
			names, keys = append(names, name), append(keys, key)
		}
	}
	for _, h := range c.Handlers() {
		for i, n := range h.Intents {
			add(fmt.Sprintf("%s.intents[%d].to", h.At, i), n.To)
		}
	}
	if h := c.Handler.HTTP; h != nil && h.Effects != nil {
		for i, name := range h.Effects.Intents {
			add(fmt.Sprintf("handler.http.effects.intents[%d]", i), name)
		}
	}
	return names, keys
}

// SenderWindows returns, by sender, how long the called system remembers idempotency keys. The senders are
// those whose intents the consumer sends again for duplicates. SenderWindows returns nil if the consumer
// sends no intents for duplicates.
func (p *Policy) SenderWindows(c *Consumer) map[string]time.Duration {
	if !c.ReEmitIntents {
		return nil
	}
	windows := map[string]time.Duration{}
	names, _ := c.recipients()
	for _, name := range names {
		window := p.Consumer(name).provider().Window
		if window == 0 {
			window = consumer.Defaults().Provider.Window
		}
		windows[name] = window
	}
	return windows
}

// checkReEmission checks the setting on_duplicate: re_emit, which sends intents again for duplicates.
func (r rules) checkReEmission(p *Policy) {
	c := r.consumer
	const key = "on_duplicate"
	if !c.ReEmitIntents || !r.isValid(key, "strategy", "handler", "from", "store") {
		return
	}
	names, keys := c.recipients()
	if r.refuseIf(c.Sends(), key, "a consumer without from sends intents, which have no duplicates", "remove it, or set it at the consumer that writes the intents") ||
		r.refuseIf(!c.Strategy.Marks(), key, "without a marker, duplicates are not recognised", "write strategy: marker or strategy: inbox, or remove it") ||
		r.refuseIf(r.usesKeyStore(), key, "the store is Redis, which cannot store intents", "use a database, or remove it") ||
		r.refuseIf(len(names) == 0, key, "the handler writes no intents", "add intents in handler.sql or handler.http.effects, or remove it") {
		return
	}
	for i, name := range names {
		if to := p.Consumer(name); to != nil && r.isValid(keys[i]) {
			r.checkResend(keys[i], to)
		}
	}
}

// checkResend checks whether a sender may send intents again.
func (r rules) checkResend(key string, to *Consumer) {
	const remedy = "write on_duplicate: skip"
	at := "on_duplicate is re_emit, and sender " + to.Name + " "
	switch h := to.Handler.HTTP; {
	case h == nil:
	case r.refuseIf(h.NoKey, key, at+"sends no key (key: none), so a second call would be a second effect", remedy+", or let it send a key that the endpoint supports"):
	case r.refuseIf(h.Window == consumer.WindowNever, key, at+"calls an endpoint without keys (window: none), so a second call would be a second effect", remedy):
	case r.refuseIf(h.Effects != nil, key, at+"applies the effects in the response of its endpoint, which happens only once", remedy):
	}
}
