package policy

import (
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// checkKeyStores judges stores of leased keys by themselves.
func (p *Policy) checkKeyStores(d *shape.Decoder) {
	for _, s := range p.Stores {
		at := "stores." + s.Name
		if s.Redis == nil || !d.Sound(at) {
			continue
		}
		for _, key := range []string{"migrate", "setup"} {
			if d.Given(at + "." + key) {
				d.FaultAt(at+"."+key, "leased keys have no tables", "remove it")
			}
		}
		if d.Given(at + ".encryption") {
			d.FaultAt(at+".encryption", "nothing is encrypted in Redis, which keeps results and a hash of each message's content", "remove it, or keep the keys in a store of the kind postgres or sqlite")
		}
		switch r := s.Redis; {
		case r.Persistence != 0 && r.Because == "":
			d.FaultAt(at+".redis.persistence", "what is declared here decides whether calls may be made twice, and nothing says why it is so", "write because: and a reason beside it")
		case r.Persistence == 0 && r.Because != "":
			d.FaultAt(at+".redis.because", "it is a reason for nothing", "write persistence: beside it, or remove it")
		case r.User != "" && r.Password == "":
			d.FaultAt(at+".redis.user", "a user without a password is let in nowhere", "write password: ${NAME} beside it")
		}
		if key, reason, remedy := s.Redis.TLS.half(); key != "" {
			d.FaultAt(at+".redis.tls."+key, reason, remedy)
		}
	}
}

// keyed reports whether the consumer's store keeps leased keys and nothing else.
func (r rules) keyed() bool { return r.store != nil && r.store.Redis != nil }

// keyStore judges a consumer whose claims are leased keys.
func (r rules) keyStore() {
	c := r.consumer
	if !r.keyed() || !r.ok("strategy", "store") {
		return
	}
	if !c.Strategy.Lease {
		r.refuse("strategy", "store "+c.Store+" is Redis, which keeps leased keys, and no effect commits there", "write strategy: lease, and handler: {http: {url: …}}; or use a database")
		return
	}
	r.keyedHandler()
	c.AckOnReceipt = false // the only one there is
	if r.ok("retention") && c.Retention.Keep == 0 {
		r.refuse("retention", "a key in Redis goes at its time, and for ever is none", "write how long copies are recognised, longer than one can take to come, as retention: 30d")
	}
	const noRows = "there is no inbox in Redis, in which something could be parked"
	for key, then := range map[string]consumer.Action{"on_conflict": c.OnConflict, "on_bad_identity": c.OnBadIdentity, "retry.on_exhausted": c.Retry.OnExhausted} {
		if then == consumer.ActionPark && r.ok(key) {
			r.refuse(key, noRows, "write dead_letter, with dead_letter: {…} at the consumer, or halt")
		}
	}
	if c.OnFiltered == consumer.OnFilteredPark && r.ok("on_filtered") {
		r.refuse("on_filtered", noRows, "write skip or dead_letter")
	}
	if c.OnParked == consumer.OnParkedBlock && r.ok("on_parked") {
		r.refuse("on_parked", noRows, "remove it")
	}
	for key, why := range map[string]string{
		"ack":                "a key is completed, and then the broker is settled",
		"on_expired":         "no key tells the age of a message",
		"retention.bodies":   "no bodies are kept",
		"retention.id_time":  "no key tells the age of a message",
		"retention.off":      "keys go by themselves",
		"alerts.pending_age": "nothing waits in the store",
		"alerts.parked":      "nothing can be parked",
		"identity.previous":  "a key is under one identity",
		"inbox.poll":         "there is no inbox that could be asked",
		"inbox.max_crashes":  "there is no inbox whose rows know their starts",
		"exclusive":          "keys do not tell whose a consumer is",
	} {
		if r.set(key) && r.ok(key) {
			r.refuse(key, why+" where the store is Redis", "remove it")
		}
	}
	if c.Retry.MaxDelay > c.MaxInMemoryWait && r.ok("retry", "max_in_memory_wait") {
		r.refuse("retry.max_delay", fmt.Sprintf("a wait of %s is longer than max_in_memory_wait, %s, and cannot be kept: there is no inbox in Redis", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait)),
			fmt.Sprintf("write at most %s, or a longer max_in_memory_wait", legible.Span(c.MaxInMemoryWait)))
	}
}

// keyedHandler judges what a consumer of leased keys may do, and where its messages come from.
func (r rules) keyedHandler() {
	c := r.consumer
	const remedy = "use a database, or handler: {http: {url: …}} without effects"
	switch h := c.Handler; {
	case !r.ok("handler"):
	case h.Kafka != nil:
		r.refuse("handler.kafka", "consumers whose store is Redis call endpoints, and publish nothing in this release", remedy)
	case h.HTTP != nil && h.HTTP.Effects != nil:
		r.refuse("handler.http.effects", "no statement could run where the store is Redis", remedy)
	}
	if c.Sends() && r.ok("from") {
		r.refuse("from", "this key is missing, and nobody writes intents into Redis", "add from: the name of a source")
	}
}
