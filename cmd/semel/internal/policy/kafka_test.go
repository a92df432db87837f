package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka"
)

const fileSource = "file: {path: payments.jsonl, format: envelope}"

// withKafka returns the edits that replace the source of the policy base with a Kafka source that
// has further keys.
func withKafka(keys ...string) []string {
	all := append([]string{`brokers: ["127.0.0.1:9092"]`, "topics: [payments]"}, keys...)
	return []string{fileSource, "kafka:\n      " + strings.Join(all, "\n      ")}
}

const secondConsumer = "  audit: {from: payments, store: shop, identity: {id: id}, handler: {sql: {statements: [select 1]}}}\n"

// byPattern returns the edits that replace the source of the policy base with a Kafka source that matches
// topics by pattern.
func byPattern(pattern string) []string {
	return []string{fileSource, `kafka: {brokers: "127.0.0.1:9092", topic_pattern: "` + pattern + `"}`}
}

// acceptedKafka returns valid policies with a Kafka source.
func acceptedKafka() []policyCase {
	return []policyCase{
		{name: "Kafka", edits: withKafka()},
		{name: "every key of Kafka", edits: withKafka("group: once", `instance: "${WORKERS}"`, "protocol: cooperative", "session_timeout: 10s", "start: earliest", "commit_interval: 5s", "on_lost_records: go_on",
			"isolation: read_uncommitted", "format: cloudevents", "max_record: 1MiB", "max_batch: 64MiB", "max_fetch: 8MiB", "max_partition_fetch: 2MiB", "client_id: shop-1", "rack: north", "tls: {ca: ca.pem, cert: /etc/c.pem, key: k.pem, server_name: kafka}",
			`sasl: {scram_sha_512: {user: shop, password: "${SECRET}"}}`)},
		{name: "Kafka from the environment", edits: []string{fileSource, `kafka: {brokers: "${BROKERS:-a:1, b:2}", topics: "${TOPIC:-payments}"}`}},
		{name: "from now on", edits: withKafka("start: now", "protocol: next_gen")},
		{name: "from a time on", edits: withKafka("start: {at: \"2026-01-01T00:00:00Z\"}", "tls: true")},
		{name: "from another group's offsets on", edits: withKafka("start: {group: old-billing}", "tls: false")},
		{name: "topics by pattern", edits: byPattern(`orders\\..*`)},
		{name: "dead letters that the pattern matches", edits: append(byPattern(`orders\\..*`), inConsumer("dead_letter: {topic: orders.dead}", "on_conflict: dead_letter")...),
			want: "14:26: warning: consumers.billing.dead_letter.topic: the topic_pattern of source payments matches it too; it is not read; name a topic that the pattern does not match"},
		{name: "dead letters that the pattern matches in part", edits: append(byPattern(`orders`), inConsumer("dead_letter: {topic: orders.dead}", "on_conflict: dead_letter")...)},
		{name: "plain in clear", edits: withKafka(`sasl: {plain: {user: shop, password: "${SECRET}"}}`),
			want: "10:13: warning: sources.payments.kafka.sasl: the secret is sent in plain text, because tls is off; write tls: true, or use scram_sha_512"},
		{name: "plain under TLS", edits: withKafka("tls: true", "sasl: {plain: {user: shop, password_file: secret.txt}}")},
		{name: "a token", edits: withKafka("tls: {}", `sasl: {oauthbearer: {token_file: token}}`)},
		{name: "two consumers in groups of their own", edits: append(withKafka(), "consumers:\n", "consumers:\n"+secondConsumer)},
		{name: "one group of two clusters", edits: append(withKafka("group: g"), "consumers:\n",
			"  copy: {kafka: {brokers: \"other:9092\", topics: [payments], group: g}}\nconsumers:\n"+strings.Replace(secondConsumer, "from: payments", "from: copy", 1))},
		{name: "dead letters", edits: append(append(withKafka(), "handler:\n", "dead_letter: {topic: payments-dead}\n    handler:\n"),
			inConsumer("on_conflict: dead_letter", "on_bad_identity: dead_letter", "on_precondition: dead_letter", "retry: {on_exhausted: dead_letter}")...)},
		{name: "a batch of one record", edits: withKafka("max_record: 8MiB", "max_batch: 8MiB")},
		{name: "dead letters that nothing makes", edits: append(withKafka(), inConsumer("dead_letter: {topic: payments-dead}")...),
			want: "16:18: warning: consumers.billing.dead_letter: no key of this consumer is set to dead_letter; remove it, or write retry: {on_exhausted: dead_letter}"},
	}
}

// refusedKafka returns policies with a Kafka source and faults.
func refusedKafka() []policyCase {
	return append(refusedKafkaValues(), refusedKafkaCombinations()...)
}

func refusedKafkaValues() []policyCase {
	return []policyCase{
		{name: "Kafka without brokers and topics", edits: []string{fileSource, "kafka: {group: a}"}, shape: true},
		{name: "key that Kafka has not", edits: withKafka("auto_offset_reset: latest", "sesion_timeout: 9s"), shape: true},
		{name: "brokers without port", edits: []string{fileSource, `kafka: {brokers: [kafka, "kafka:0", ":9092", "a:1,b"], topics: [payments]}`}},
		{name: "names of topics", edits: []string{fileSource, `kafka: {brokers: "a:1", topics: ["pay ments", "..", ""]}`}, shape: true},
		{name: "topics and a pattern", edits: withKafka(`topic_pattern: "orders.*"`), shape: true},
		{name: "a pattern that is none", edits: byPattern("orders.(*")},
		{name: "words of Kafka", edits: withKafka("protocol: eager", "isolation: committed", "format: json", "start: end"), shape: true},
		{name: "a start that is like a word that is refused", edits: withKafka("start: later"), shape: true},
		{name: "a start that loses records of new partitions", edits: withKafka("start: latest"), shape: true},
		{name: "bounds of Kafka", edits: withKafka("session_timeout: 5s", "max_record: 1B", "max_batch: 1B", "max_fetch: 100MiB", "max_partition_fetch: 1B")},
		{name: "a start that is no time", edits: withKafka("start: {at: yesterday}"), shape: true},
		{name: "a start that is a time and a group", edits: withKafka("start: {at: 2026-01-01T00:00:00Z, group: old}"), shape: true},
		{name: "a start that is nothing", edits: withKafka("start: {}"), shape: true},
		{name: "tls that is a text", edits: withKafka("tls: yes please"), shape: true},
		{name: "two ways to log in", edits: withKafka(`sasl: {plain: {user: a, password: "${SECRET}"}, oauthbearer: {token: "${SECRET}"}}`), shape: true},
		{name: "no way to log in", edits: withKafka("sasl: {}"), shape: true},
		{name: "login without secret", edits: withKafka("tls: true", "sasl: {plain: {user: a}}"), shape: true},
		{name: "login with two secrets", edits: withKafka("tls: true", `sasl: {plain: {user: a, password: "${SECRET}", password_file: f}}`), shape: true},
		{name: "secrets in the policy", edits: withKafka("tls: true", "sasl: {scram_sha_256: {user: a, password: hunter2}}"), shape: true},
		{name: "secrets beside the environment", edits: withKafka("tls: true", `sasl: {oauthbearer: {token: "hunter2-${SECRET}"}}`), shape: true},
		{name: "secrets as a default", edits: withKafka("tls: true", `sasl: {plain: {user: a, password: "${NONE:-hunter2}"}}`), shape: true},
		{name: "a secret that is not set, or empty", edits: withKafka("tls: true", `sasl: {plain: {user: "${NOBODY}", password: "${EMPTY}"}}`)},
		{name: "a secret that is a number", edits: withKafka("tls: true", `sasl: {plain: {user: a, password: 123456}}`), shape: true},
		{name: "dead letters without topic", edits: append(withKafka(), inConsumer("dead_letter: {}", "retry: {on_exhausted: dead_letter}")...), shape: true},
	}
}

func refusedKafkaCombinations() []policyCase {
	return []policyCase{
		{name: "a batch smaller than a record", edits: withKafka("max_record: 16MiB", "max_batch: 8MiB")},
		{name: "two consumers in one group", edits: append(withKafka("group: g"), "consumers:\n", "consumers:\n"+secondConsumer)},
		{name: "a group that is another consumer's name", edits: append(withKafka(), "consumers:\n",
			"  copy: {kafka: {brokers: \"127.0.0.1:9092,b:1\", topics: [refunds], group: billing}}\nconsumers:\n"+strings.Replace(secondConsumer, "from: payments", "from: copy", 1))},
		{name: "one group of brokers in another order", edits: []string{fileSource, `kafka: {brokers: ["a:1", "b:2"], topics: [payments], group: g}`, "consumers:\n",
			"  copy: {kafka: {brokers: [\"b:2\", \"a:1\"], topics: [refunds], group: g}}\nconsumers:\n" + strings.Replace(secondConsumer, "from: payments", "from: copy", 1)}},
		{name: "a topic twice", edits: []string{fileSource, `kafka: {brokers: "a:1", topics: [payments, refunds, payments]}`}},
		{name: "session time-out of the next protocol", edits: withKafka("protocol: next_gen", "session_timeout: 20s")},
		{name: "certificate without key", edits: withKafka("tls: {cert: c.pem}")},
		{name: "key without certificate", edits: withKafka("tls: {key: k.pem}")},
		{name: "a start at its own offsets", edits: withKafka("start: {group: billing}")},
		{name: "a drain longer than a rebalance", edits: append(withKafka(), inConsumer("drain: 46s")...)},
		{name: "dead letters without a place", edits: append(withKafka(), inConsumer("on_conflict: dead_letter", "on_bad_identity: dead_letter", "on_precondition: dead_letter", "retry: {on_exhausted: dead_letter}")...)},
		{name: "dead letters of a file", edits: inConsumer("on_conflict: dead_letter", "retry: {on_exhausted: dead_letter}")},
		{name: "a place for the dead letters of a file", edits: inConsumer("dead_letter: {topic: payments-dead}", "retry: {on_exhausted: dead_letter}")},
		{name: "dead letters into the topic that is read", edits: append(withKafka(), inConsumer("dead_letter: {topic: payments}", "retry: {on_exhausted: dead_letter}")...)},
		{name: "dead letters that another consumer would read", edits: append(append(byPattern(`orders\\..*`), "consumers:\n", "consumers:\n"+secondConsumer), inConsumer("dead_letter: {topic: orders.dead}", "on_conflict: dead_letter")...)},
		{name: "every fault of Kafka at once", edits: append(append(withKafka("group: g", "protocol: next_gen", "session_timeout: 20s", "tls: {cert: c.pem}"), "consumers:\n", "consumers:\n"+secondConsumer),
			inConsumer("drain: 50s", "on_conflict: dead_letter")...)},
	}
}

func TestAKafkaSourceIsReadKeyByKey(t *testing.T) {
	p, faults := parse(acceptedKafka()[1])
	if len(faults) > 0 {
		t.Fatal(faultLines(faults))
	}
	want := &Kafka{
		Brokers: []string{"127.0.0.1:9092"}, Topics: []string{"payments"}, Group: "once", Instance: "4", SessionTimeout: 10 * time.Second, CommitInterval: 5 * time.Second, OnLostRecords: kafka.GoOn,
		ReadUncommitted: true, Format: kafka.CloudEvents, MaxRecord: 1 << 20,
		MaxBatch: 64 << 20, MaxFetch: 8 << 20, MaxPartitionFetch: 2 << 20, ClientID: "shop-1", Rack: "north",
		TLS:  &TLS{CA: "dir/ca.pem", Cert: "/etc/c.pem", Key: "dir/k.pem", ServerName: "kafka"},
		SASL: &SASL{Scram512: &Login{User: "shop", Password: "hunter2"}},
	}
	if got := p.Source("payments").Kafka; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAKafkaSourceHasTheDefaultsOfItsAdapter(t *testing.T) {
	p, _ := parse(policyCase{edits: withKafka()})
	want := &Kafka{Brokers: []string{"127.0.0.1:9092"}, Topics: []string{"payments"}, SessionTimeout: 45 * time.Second, CommitInterval: time.Second, MaxRecord: 16 << 20, ClientID: "semel"}
	k := p.Source("payments").Kafka
	if !reflect.DeepEqual(k, want) {
		t.Errorf("%+v, want %+v", k, want)
	}
	if group := k.GroupOf(p.Consumer("billing")); group != "billing" {
		t.Errorf("the group is %q, not the consumer's name", group)
	}
	if p.Consumer("billing").DeadLetter != nil {
		t.Error("there is a place for dead letters")
	}
}

func TestATextOfTheEnvironmentMayHoldSeveralBrokers(t *testing.T) {
	p, faults := parse(acceptedKafka()[2])
	if len(faults) > 0 || !reflect.DeepEqual(p.Source("payments").Kafka.Brokers, []string{"a:1", "b:2"}) {
		t.Errorf("%v %v", p, faults)
	}
}

func TestWhereAGroupBegins(t *testing.T) {
	for text, want := range map[string]kafka.Start{
		"earliest":                        {},
		"now":                             {Now: true},
		"{group: old}":                    {Group: "old"},
		"{at: 2026-01-01T12:00:00+02:00}": {At: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)},
	} {
		p, faults := parse(policyCase{edits: withKafka("start: " + text)})
		if len(faults) > 0 {
			t.Error(faultLines(faults))
			continue
		}
		got := p.Source("payments").Kafka.Start
		if !got.At.Equal(want.At) || got.Now != want.Now || got.Group != want.Group {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestStartingAtTheEndOfEveryPartitionIsRefused(t *testing.T) {
	t.Run("trap_37_latest_is_refused_and_the_default_is_the_beginning", func(t *testing.T) {
		wantFault(t, withKafka("start: latest"), "sources.payments.kafka.start: latest would also skip what a new partition got", "write now")
		if p, _ := parse(policyCase{edits: withKafka()}); p.Source("payments").Kafka.Start != (kafka.Start{}) {
			t.Error("the default is not the beginning")
		}
	})
}

func TestDeadLettersReachTheEngine(t *testing.T) {
	for _, c := range acceptedKafka() {
		if c.name != "dead letters" {
			continue
		}
		p, faults := parse(c)
		if len(faults) > 0 {
			t.Fatal(faultLines(faults))
		}
		got := p.Consumer("billing").Config()
		if got.OnConflict != consumer.ActionDeadLetter || got.OnBadIdentity != consumer.ActionDeadLetter || got.OnPrecondition != consumer.ActionDeadLetter || got.Retry.OnExhausted != consumer.ActionDeadLetter {
			t.Errorf("%+v", got)
		}
		if letter := p.Consumer("billing").DeadLetter; letter == nil || letter.Topic != "payments-dead" {
			t.Errorf("%+v", letter)
		}
	}
}

func TestNoSecretOfKafkaIsShown(t *testing.T) {
	t.Run("law_15_a_secret_that_stands_in_the_policy_is_refused_and_not_shown", func(t *testing.T) {
		refusals := 0
		for _, c := range refusedKafkaValues() {
			_, faults := parse(c)
			if text := faultLines(faults); strings.Contains(text, "hunter2") || strings.Contains(text, "123456") {
				t.Errorf("%s:\n%s", c.name, text)
			} else if strings.Contains(text, "the policy contains a secret in plain text") {
				refusals++
			}
		}
		if refusals < 4 {
			t.Errorf("%d of the secrets are refused", refusals)
		}
	})
}

func TestTheCoordinatesOfKafkaAreNoIdentity(t *testing.T) {
	for name, selector := range map[string]string{
		"trap_44_an_offset_can_hold_another_record_after_an_election": "offset",
		"trap_45_a_recreated_topic_counts_from_zero":                  "offset",
		"trap_46_a_mirrored_cluster_has_other_partitions_and_offsets": "partition",
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, append(withKafka(), `id: "header:ce-id"`, "id: "+selector), "consumers.billing.identity.id:", "cannot be an identity")
		})
	}
}
