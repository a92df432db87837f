package policy

import "github.com/semel-go/semel/cmd/semel/internal/policy/shape"

// checkKeyStores checks the settings of stores with leased keys. Other rules check the consumers of stores
// with leased keys.
func (p *Policy) checkKeyStores(d *shape.Decoder) {
	for _, s := range p.Stores {
		at := place{d, "stores." + s.Name}
		if s.Redis == nil || !d.Sound(at.at) {
			continue
		}
		for _, key := range []string{"migrate", "setup"} {
			at.when(at.set(key), key, "leased keys have no tables", "remove it")
		}
		at.when(at.set("encryption"), "encryption", "Redis has only results and a hash of each message's content, which are not encrypted", "remove it, or keep the keys in a store of the kind postgres or sqlite")
		switch r := s.Redis; {
		case at.when(r.Persistence != 0 && r.Because == "", "redis.persistence", "this declaration decides whether calls may be made twice, so it needs a reason", "add because: with a reason"):
		case at.when(r.Persistence == 0 && r.Because != "", "redis.because", "because needs persistence, which is not set", "add persistence:, or remove it"):
		case at.when(r.User != "" && r.Password == "", "redis.user", "a user without a password cannot log in", "add password: ${NAME}"):
		}
		key, reason, remedy := s.Redis.TLS.half()
		at.when(key != "", "redis.tls."+key, reason, remedy)
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
	if r.when(!c.Strategy.Lease, "strategy", "store "+c.Store+" is Redis, which has only leased keys, so no effect can commit there", "write strategy: lease, and handler: {http: {url: …}}; or use a database") {
		return
	}
	r.keyedHandler()
	c.AckOnReceipt = false // only this value is possible with leased keys
	r.when(r.ok("retention") && c.Retention.Keep == 0, "retention", "keys in Redis always expire, so forever is not possible", "set a retention that is longer than a copy can be late, such as 30d")
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
		r.when(r.set(key) && r.ok(key), key, "the store is Redis: "+why, "remove it")
	}
}

// keyedHandler checks the handler and source of a consumer with leased keys.
func (r rules) keyedHandler() {
	c := r.consumer
	const remedy = "use a database, or handler: {http: {url: …}} without effects"
	switch h := c.Handler; {
	case !r.ok("handler"):
	case r.when(h.Kafka != nil, "handler.kafka", "consumers with a Redis store can call endpoints, but cannot publish in this release", remedy):
	case r.when(h.HTTP != nil && h.HTTP.Effects != nil, "handler.http.effects", "Redis cannot run statements", remedy):
	}
	r.when(c.Sends() && r.ok("from"), "from", "this key is missing, and intents cannot be stored in Redis", "add from: the name of a source")
}
