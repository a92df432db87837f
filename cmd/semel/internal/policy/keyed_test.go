package policy

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// keyedPolicy is a policy whose consumer keeps claims as leased keys in Redis.
const keyedPolicy = `version: 1
stores:
  keys:
    redis: {addresses: ["127.0.0.1:6379", "127.0.0.1:6380"], user: semel, password: "${SECRET}", prefix: pay, hash_tag: t, persistence: seconds, because: "it has a replica"}
sources:
  orders: {file: {path: in.jsonl, format: envelope}}
consumers:
  charge:
    from: orders
    store: keys
    strategy: lease
    identity: {id: "header:id"}
    retention: 30d
    lanes: none
    on_conflict: halt
    on_bad_identity: halt
    retry: {on_exhausted: halt}
    handler: {http: {url: "https://bank.example/charge"}}
`

func TestAConsumerWhoseClaimsAreLeasedKeys(t *testing.T) {
	env := func(name string) (string, bool) { return "x", name == "SECRET" }
	p, faults := Parse("semel.yaml", []byte(keyedPolicy), env)
	if len(faults) > 0 || len(p.Warnings) > 0 {
		t.Fatal(faults, p)
	}
	if r := p.Stores[0].Redis; len(r.Addresses) != 2 || r.Password != "x" || r.HashTag != "t" || r.AllowVolatile() != "" || p.HasTables("") {
		t.Errorf("%+v", r)
	}
	for want, edit := range map[string][2]string{
		"on_conflict: Redis has no inbox":                                          {"    on_conflict: halt\n", ""},
		"on_bad_identity: Redis has no inbox":                                      {"on_bad_identity: halt", "on_bad_identity: park"},
		"retry.on_exhausted: Redis has no inbox":                                   {"retry: {on_exhausted: halt}", "retry: {on_exhausted: park}"},
		"H1 retention: keys in Redis always expire":                                {"    retention: 30d\n", ""},
		"strategy: store keys is Redis":                                            {"strategy: lease", "strategy: marker"},
		"ack: the store is Redis: with leased keys":                                {"lanes: none", "ack: after_effect"},
		"on_expired: the store is Redis: keys do not contain the age":              {"lanes: none", "on_expired: discard"},
		"retry.max_delay: a wait of 1h":                                            {"{on_exhausted: halt}", "{on_exhausted: halt, max_delay: 1h}"},
		"stores.keys.setup: leased keys have no tables":                            {"stores:\n  keys:\n", "stores:\n  keys:\n    setup: a.sql\n"},
		"J4 stores.keys.redis.persistence: this declaration":                       {", because: \"it has a replica\"", ""},
		"stores.keys.redis.because: because needs persistence, which is not set":   {"persistence: seconds, ", ""},
		"stores.keys.redis.user: a user without a password":                        {", password: \"${SECRET}\"", ""},
		"stores.keys.redis.addresses[0]: this is not an address":                   {"127.0.0.1:6379", "127.0.0.1"},
		"stores.keys.redis.prefix: names of keys cannot contain this":              {"prefix: pay", "prefix: \"{pay}\""},
		"handler.kafka: consumers with a Redis store":                              {"http: {url: \"https://bank.example/charge\"}", "kafka: {brokers: \"127.0.0.1:9092\", topic: done}"},
		"handler.http.effects: Redis cannot run statements":                        {"/charge\"}", "/charge\", effects: {statements: {put: {sql: \"delete from t\"}}}}"},
		"from: this key is missing":                                                {"    from: orders\n", ""},
		"alerts.pending_age: the store is Redis: nothing waits in the store":       {"lanes: none", "alerts: {pending_age: 1m}"},
		"inbox.max_crashes: the store is Redis: there is no inbox whose rows":      {"lanes: none", "inbox: {max_crashes: 5}"},
		"inbox.poll: the store is Redis: there is no inbox to poll":                {"lanes: none", "inbox: {poll: 1s}"},
		"retention.bodies: the store is Redis: no bodies are kept":                 {"retention: 30d", "retention: {keep: 30d, bodies: 1d}"},
		"retention.id_time: the store is Redis: keys do not contain the age":       {"retention: 30d", "retention: {keep: 30d, id_time: uuidv7}"},
		"retention.off: the store is Redis: keys expire anyway":                    {"retention: 30d", "retention: {keep: 30d, off: true}"},
		"identity.previous: the store is Redis: a key has only one identity":       {"{id: \"header:id\"}", "{id: \"header:id\", previous: {id: \"header:old\"}}"},
		"handler.http.timeout: a call may take 10s, but another process can claim": {"lanes: none", "inbox: {lease: 5s}"},
		"version: a stream's version advances in the transaction of t":             {"lanes: none", "version: {stream: \"body:/a\", number: \"body:/n\"}"},
	} {
		t.Run(want, func(t *testing.T) {
			text := strings.Replace(keyedPolicy, edit[0], edit[1], 1)
			_, faults := Parse("semel.yaml", []byte(text), env)
			want := strings.TrimPrefix(strings.TrimPrefix(want, "H1 "), "J4 ")
			for _, f := range faults {
				if strings.Contains(f.Error(), want) && f.Remedy != "" && f.Line > 0 {
					return
				}
			}
			t.Errorf("it says %v", faults)
		})
	}
	t.Run("C10_only_a_declared_natural_effect_is_applied_without_a_key", func(t *testing.T) {
		apply := func(with string) (*Policy, []shape.Fault) {
			return Parse("semel.yaml", []byte(strings.Replace(keyedPolicy, "lanes: none\n", "lanes: none\n    on_store_down: apply\n"+with, 1)), env)
		}
		p, faults := apply("    effect: {kind: projection, says: \"a search index\"}\n")
		if len(faults) > 0 || p.Consumers[0].NaturalReason() != "the effect is a projection: a search index" {
			t.Error(faults)
		}
		for with, want := range map[string]string{
			"": "no effect is declared for which this is harmless",
			"    effect: {kind: external, says: \"a charge\"}\n": "an effect of the kind external is not idempotent by nature: each copy repeats the effect",
			"    effect: {kind: command, says: \"a request\"}\n": "is not idempotent by nature",
		} {
			if _, faults := apply(with); len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
				t.Errorf("%q: %v", with, faults)
			}
		}
	})
	if volatile, faults := Parse("semel.yaml", []byte(strings.Replace(keyedPolicy, "persistence: seconds", "persistence: volatile", 1)), env); len(faults) > 0 || volatile.Stores[0].Redis.AllowVolatile() != "it has a replica" {
		t.Error(faults)
	}
}

func TestNoRemedyOfLeasedKeysIsToPark(t *testing.T) {
	for name, edit := range map[string][2]string{
		"dead_letter": {"lanes: none", "dead_letter: {topic: dead}"},
		"on_conflict": {"on_conflict: halt", "on_conflict: dead_letter"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(keyedPolicy, edit[0], edit[1], 1)
			_, faults := Parse("semel.yaml", []byte(text), func(string) (string, bool) { return "x", true })
			if len(faults) != 1 || strings.Contains(faults[0].Remedy, "park") || !strings.Contains(faults[0].Remedy, "halt") {
				t.Errorf("it says %v; there is no inbox in which something could be parked", faults)
			}
		})
	}
}
