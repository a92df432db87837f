package policy

import "fmt"

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
