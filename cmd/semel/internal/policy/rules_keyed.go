package policy

import "github.com/semel-go/semel/cmd/semel/internal/policy/shape"

// checkKeyStores checks the settings of stores with leased keys. Other rules check the consumers of stores
// with leased keys.
func (p *Policy) checkKeyStores(d *shape.Decoder) {
	for _, s := range p.Stores {
		at := rulePath{d, "stores." + s.Name}
		if s.Redis == nil || !d.Sound(at.path) {
			continue
		}
		for _, key := range []string{"migrate", "setup"} {
			at.refuseIf(at.isSet(key), key, "leased keys have no tables", "remove it")
		}
		at.refuseIf(at.isSet("encryption"), "encryption", "Redis has only results and a hash of each message's content, which are not encrypted", "remove it, or keep the keys in a store of the kind postgres or sqlite")
		switch r := s.Redis; {
		case at.refuseIf(r.Persistence != 0 && r.Because == "", "redis.persistence", "this declaration decides whether calls may be made twice, so it needs a reason", "add because: with a reason"):
		case at.refuseIf(r.Persistence == 0 && r.Because != "", "redis.because", "because needs persistence, which is not set", "add persistence:, or remove it"):
		case at.refuseIf(r.User != "" && r.Password == "", "redis.user", "a user without a password cannot log in", "add password: ${NAME}"):
		}
		key, reason, remedy := s.Redis.TLS.missingHalf()
		at.refuseIf(key != "", "redis.tls."+key, reason, remedy)
	}
}

// usesKeyStore reports whether the consumer's store has leased keys instead of Semel's tables.
func (r rules) usesKeyStore() bool { return r.store != nil && r.store.Redis != nil }

// checkKeyStore checks a consumer that keeps its claims as leased keys.
func (r rules) checkKeyStore() {
	c := r.consumer
	if !r.usesKeyStore() || !r.isValid("strategy", "store") {
		return
	}
	if r.refuseIf(!c.Strategy.Lease, "strategy", "store "+c.Store+" is Redis, which has only leased keys, so no effect can commit there", "write strategy: lease, and handler: {http: {url: …}}; or use a database") {
		return
	}
	r.checkKeyedHandler()
	c.AckOnReceipt = false // only this value is possible with leased keys
	r.refuseIf(r.isValid("retention") && c.Retention.Keep == 0, "retention", "keys in Redis always expire, so forever is not possible", "set a retention that is longer than a copy can be late, such as 30d")
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
		r.refuseIf(r.isSet(key) && r.isValid(key), key, "the store is Redis: "+why, "remove it")
	}
}

// checkKeyedHandler checks the handler and source of a consumer with leased keys.
func (r rules) checkKeyedHandler() {
	c := r.consumer
	const remedy = "use a database, or handler: {http: {url: …}} without effects"
	switch h := c.Handler; {
	case !r.isValid("handler"):
	case r.refuseIf(h.Kafka != nil, "handler.kafka", "consumers with a Redis store can call endpoints, but cannot publish in this release", remedy):
	case r.refuseIf(h.HTTP != nil && h.HTTP.Effects != nil, "handler.http.effects", "Redis cannot run statements", remedy):
	}
	r.refuseIf(c.Sends() && r.isValid("from"), "from", "this key is missing, and intents cannot be stored in Redis", "add from: the name of a source")
}
