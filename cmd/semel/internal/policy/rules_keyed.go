package policy

import (
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// checkKeyStores checks the settings of stores with leased keys. Other rules check the consumers of stores
// with leased keys.
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
			d.FaultAt(at+".encryption", "Redis has only results and a hash of each message's content, which are not encrypted", "remove it, or keep the keys in a store of the kind postgres or sqlite")
		}
		switch r := s.Redis; {
		case r.Persistence != 0 && r.Because == "":
			d.FaultAt(at+".redis.persistence", "this declaration decides whether calls may be made twice, so it needs a reason", "add because: with a reason")
		case r.Persistence == 0 && r.Because != "":
			d.FaultAt(at+".redis.because", "because needs persistence, which is not set", "add persistence:, or remove it")
		case r.User != "" && r.Password == "":
			d.FaultAt(at+".redis.user", "a user without a password cannot log in", "add password: ${NAME}")
		}
		if key, reason, remedy := s.Redis.TLS.half(); key != "" {
			d.FaultAt(at+".redis.tls."+key, reason, remedy)
		}
	}
}

// The method keyed reports whether the consumer's store has leased keys instead of Semel's tables.
func (r rules) keyed() bool { return r.store != nil && r.store.Redis != nil }

// keyStore checks a consumer that keeps its claims as leased keys.
func (r rules) keyStore() {
	c := r.consumer
	if !r.keyed() || !r.ok("strategy", "store") {
		return
	}
	if !c.Strategy.Lease {
		r.refuse("strategy", "store "+c.Store+" is Redis, which has only leased keys, so no effect can commit there", "write strategy: lease, and handler: {http: {url: …}}; or use a database")
		return
	}
	r.keyedHandler()
	c.AckOnReceipt = false // with leased keys, a message is never acked before its effect
	if r.ok("retention") && c.Retention.Keep == 0 {
		r.refuse("retention", "keys in Redis always expire, so forever is not possible", "set a retention that is longer than a copy can be late, such as 30d")
	}
	const noRows = "Redis has no inbox, so nothing can be parked"
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
		"ack":                "with leased keys, a message is always acked after its key is completed",
		"on_expired":         "keys do not contain the age of a message",
		"retention.bodies":   "no bodies are kept",
		"retention.id_time":  "keys do not contain the age of a message",
		"retention.off":      "keys expire anyway",
		"alerts.pending_age": "nothing waits in the store",
		"alerts.parked":      "nothing can be parked",
		"identity.previous":  "a key has only one identity",
		"inbox.poll":         "there is no inbox to poll",
		"inbox.max_crashes":  "there is no inbox whose rows count crashes",
		"exclusive":          "keys do not record the owner of a consumer",
	} {
		if r.set(key) && r.ok(key) {
			r.refuse(key, "the store is Redis: "+why, "remove it")
		}
	}
	if c.Retry.MaxDelay > c.MaxInMemoryWait && r.ok("retry", "max_in_memory_wait") {
		r.refuse("retry.max_delay", fmt.Sprintf("a wait of %s is longer than max_in_memory_wait, %s, and Redis has no inbox in which the message could wait", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait)),
			fmt.Sprintf("write at most %s, or a longer max_in_memory_wait", legible.Span(c.MaxInMemoryWait)))
	}
}

// keyedHandler checks the handler and source of a consumer with leased keys.
func (r rules) keyedHandler() {
	c := r.consumer
	const remedy = "use a database, or handler: {http: {url: …}} without effects"
	switch h := c.Handler; {
	case !r.ok("handler"):
	case h.Kafka != nil:
		r.refuse("handler.kafka", "consumers with a Redis store can call endpoints, but cannot publish in this release", remedy)
	case h.HTTP != nil && h.HTTP.Effects != nil:
		r.refuse("handler.http.effects", "Redis cannot run statements", remedy)
	}
	if c.Sends() && r.ok("from") {
		r.refuse("from", "this key is missing, and intents cannot be stored in Redis", "add from: the name of a source")
	}
}
