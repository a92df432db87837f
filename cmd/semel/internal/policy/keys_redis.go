package policy

import (
	"strings"

	"github.com/semel-go/semel/store"
)

// The table of a store of leased keys in Redis.

func redisShape() object[Redis] {
	return object[Redis]{fields: []field[Redis]{
		key(meta{name: "addresses", required: true, doc: "The server as `host:port`, or nodes of a cluster, or the Sentinels. Whether it is a cluster, the server tells."},
			addressesShape{}, func(r *Redis) *[]string { return &r.Addresses }),
		key(meta{name: "sentinel", doc: "The name under which the Sentinels know the master."},
			word{what: "the name of a master"}, func(r *Redis) *string { return &r.Sentinel }),
		key(meta{name: "user", doc: "The user, where the server has several. What it needs to be allowed: see [leased keys](leased-keys.md#what-redis-is-worth)."},
			word{what: "the name of a user"}, func(r *Redis) *string { return &r.User }),
		key(meta{name: "password", doc: "The password, as `${NAME}` of the environment."}, secret{}, func(r *Redis) *string { return &r.Password }),
		key(meta{name: "tls", def: "false", doc: "Encrypts every connection: `true` with the system's authorities, or a mapping."},
			encryption{tlsShape()}, func(r *Redis) **TLS { return &r.TLS }),
		key(meta{name: "prefix", def: "semel", doc: "What the names of keys begin with."},
			word{what: "a prefix", check: badKeyPart}, func(r *Redis) *string { return &r.Prefix }),
		key(meta{name: "hash_tag", doc: "A text that stands in braces behind the prefix: all keys are then on one node of a cluster. Without it they spread over all of them."},
			word{what: "a text", check: badKeyPart}, func(r *Redis) *string { return &r.HashTag }),
		key(meta{name: "persistence", doc: "What is declared of the server, where it does not tell its settings, as managed services do not: `durable`: what it acknowledged, it knows; `seconds`: but for the last seconds before a crash or a fail-over; `volatile`: it may forget keys, and calls may be made twice, which `because` says why it is bearable. Needs `because`. Without it a server that is volatile, or does not tell, is refused."},
			choice[store.Durability]{options: []option[store.Durability]{
				{word: "durable", value: store.Durable}, {word: "seconds", value: store.DurableExceptSeconds}, {word: "volatile", value: store.Volatile}}},
			func(r *Redis) *store.Durability { return &r.Persistence }),
		key(meta{name: "because", doc: "Why `persistence` is so, or is bearable; it is printed at the start."},
			word{what: "a sentence"}, func(r *Redis) *string { return &r.Because }),
	}}
}

func badKeyPart(s string) (reason, remedy string) {
	if strings.ContainsAny(s, "{} \t\n") || len(s) > 100 {
		return "this cannot stand in the names of keys", "use at most 100 bytes without braces and blanks; the braces of a hash tag are put around it"
	}
	return "", ""
}

// addressesShape is a list of texts, each of one address.
type addressesShape struct{ leaf }

func (addressesShape) list() list[string] {
	return list[string]{item: word{what: "an address as host:port", check: badAddress}, single: true}
}

func (s addressesShape) read(d *decoder, p place) ([]string, bool) { return s.list().read(d, p) }
func (s addressesShape) words() string                             { return s.list().words() }
func (s addressesShape) schema() schema                            { return s.list().schema() }

func badAddress(text string) (reason, remedy string) {
	if reason, _ := badBrokers(text); reason != "" || strings.Contains(text, ",") {
		return "this is no address", `write "host:port", as "127.0.0.1:6379", or a list of them`
	}
	return "", ""
}
