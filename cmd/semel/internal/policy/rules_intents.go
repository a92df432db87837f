package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/consumer"
)

// Sends reports whether the consumer carries out intents: it has no source, and works on
// what others write into its inbox.
func (c *Consumer) Sends() bool { return c.From == "" }

// sender judges a consumer without a source.
func (r rules) sender() {
	c := r.consumer
	if !r.ok("from", "strategy") {
		return
	}
	switch {
	case !c.Sends():
		return
	case !c.Strategy.Lease:
		r.refuse("from", "this key is missing", "add from: the name of a source; only a consumer with strategy: lease has none, which sends intents")
		return
	}
	for _, key := range []string{"filter", "on_filtered", "identity", "dead_letter", "ack", "max_unacked"} {
		if r.set(key) {
			r.refuse(key, "a consumer without from sends intents, which others write: it reads no source that this could be of", "remove it, or add from: the name of a source")
		}
	}
	if r.ok("retry", "on_conflict", "on_bad_identity", "on_precondition", "on_filtered") {
		r.refuseAll(r.deadLetterEndings(), "a consumer without from keeps no dead letters", "write park: the intent is kept in the store")
	}
	c.Identity = Identity{ID: []string{"id"}, Source: "source"}
}

// intents judges what a handler of statements writes down for senders.
func (r rules) intents(p *Policy) {
	purposes := map[string]bool{}
	for _, h := range r.consumer.Handlers() {
		for i, n := range h.Intents {
			key := fmt.Sprintf("%s.intents[%d]", h.At, i)
			if !r.ok(key) {
				continue
			}
			r.intentTo(p, key+".to", n.To)
			same := fmt.Sprintf("%q %q %q %q", h.ParamsAt, n.To, n.Purpose, n.Recipient)
			if purposes[same] {
				r.refuse(key+".purpose", "another intent of this handler has it, and the same recipient, so that both would have one id", "give each a purpose of its own")
			}
			purposes[same] = true
		}
	}
}

// intentTo judges whom an intent is addressed to.
func (r rules) intentTo(p *Policy, key, name string) {
	var senders []string
	for _, c := range p.Consumers {
		if c.Sends() {
			senders = append(senders, c.Name)
		}
	}
	switch to := p.Consumer(name); {
	case to == nil:
		r.refuse(key, fmt.Sprintf("there is no consumer %q", name), unknownName(name, "consumers without from", senders))
	case !to.Sends():
		r.refuse(key, fmt.Sprintf("consumer %s reads source %s, and sends no intents", name, to.From), "name a consumer without from, with strategy: lease")
	case to.Store != r.consumer.Store:
		r.refuse(key, fmt.Sprintf("consumer %s works on store %s, and an intent is written into store %s, in the transaction of its message", name, to.Store, r.consumer.Store), "give the two one store")
	}
}

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
