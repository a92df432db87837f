package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/consumer"
)

// recipients are the names of the senders that the consumer writes intents for, and the key
// that names each.
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

// SenderWindows are for how long the other sides of those senders know a key that the
// consumer's duplicates have send again; nil where they have nothing sent.
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

// reEmission judges whether what a duplicate has sent again can be.
func (r rules) reEmission(p *Policy) {
	c := r.consumer
	const key = "on_duplicate"
	if !c.ReEmitIntents || !r.ok(key, "strategy", "handler", "from", "store") {
		return
	}
	names, keys := c.recipients()
	switch {
	case c.Sends():
		r.refuse(key, "a consumer without from sends intents, and no copies of these are delivered", "remove it, or write it at the consumer whose handler writes them")
		return
	case !c.Strategy.Marks():
		r.refuse(key, "without a marker nothing tells which messages are duplicates", "write strategy: marker or strategy: inbox, or remove it")
		return
	case r.keyed():
		r.refuse(key, "the store is Redis, into which no intents are written", "use a database, or remove it")
		return
	case len(names) == 0:
		r.refuse(key, "the handler writes no intents that could be sent again", "write what is to be sent as intents of handler.sql or of handler.http.effects, or remove it")
		return
	}
	for i, name := range names {
		if to := p.Consumer(name); to != nil && r.ok(keys[i]) {
			r.sentAgain(keys[i], to)
		}
	}
}

// sentAgain judges a sender that is to send again.
func (r rules) sentAgain(key string, to *Consumer) {
	const remedy = "write on_duplicate: skip"
	at := "on_duplicate is re_emit, and sender " + to.Name + " "
	switch h := to.Handler.HTTP; {
	case h == nil:
	case h.NoKey:
		r.refuse(key, at+"sends no key (key: none), so that a second call is a second effect", remedy+", or have it send a key that the endpoint knows")
	case h.Window == consumer.WindowNever:
		r.refuse(key, at+"calls an endpoint that knows no keys (window: none), so that a second call is a second effect", remedy)
	case h.Effects != nil:
		r.refuse(key, at+"applies what its endpoint answers (effects), which is done once and not asked for again", remedy)
	}
}
