package policy

import (
	"strings"
	"testing"
	"time"
)

// withPublish returns the edits for a consumer whose Kafka handler has the given keys.
func withPublish(keys ...string) []string {
	_, handler, _ := strings.Cut(base, "    handler:\n")
	return append(withValidHTTP()[:2], "    handler:\n"+handler, "    handler:\n      kafka:\n        "+strings.Join(keys, "\n        ")+"\n")
}

// fromKafka returns the edits for a consumer that publishes with the given keys, and that reads from the
// same Kafka cluster.
func fromKafka(source string, keys ...string) []string {
	return append(withPublish(append([]string{`brokers: "a.example:9092"`}, keys...)...),
		"file: {path: payments.jsonl, format: envelope}", "kafka: {brokers: [\"a.example:9092\", \"b.example:9092\"], "+source+"}")
}

func acceptedPublishing() []policyCase {
	return []policyCase{
		{name: "a topic to publish to", edits: withPublish(`brokers: "a.example:9092"`, "topic: receipts")},
		{name: "topics that messages name", edits: withPublish(`brokers: "a.example:9092,b.example:9092"`, "topic_header: destination", "topics: [mails, bills]")},
		{name: "all keys of publishing", edits: withPublish(`brokers: ["a.example:9092"]`, "topic: receipts", "topic_header: destination", "topics: bills", "timeout: 5s", "client_id: shop",
			"tls: {ca: ca.pem}", `sasl: {plain: {user: shop, password: "${SECRET}"}}`)},
		{name: "another topic than those that are read", edits: fromKafka("topics: orders", "topic: receipts")},
		{name: "a user in clear", edits: withPublish(`brokers: "a.example:9092"`, "topic: receipts", `sasl: {plain: {user: shop, password: "${SECRET}"}}`),
			want: "19:15: warning: consumers.billing.handler.kafka.sasl: the secret is sent in plain text, because tls is off; write tls: true, or use scram_sha_512"},
	}
}

func refusedPublishing() []policyCase {
	const brokers = `brokers: "a.example:9092"`
	return []policyCase{
		{name: "publishing with a marker", edits: append(withPublish(brokers, "topic: receipts"), "strategy: lease\n    alerts: {pending_age: 1m}\n", "strategy: marker\n")},
		{name: "publishing to no topic", edits: withPublish(brokers)},
		{name: "publishing without brokers", edits: withPublish("topic: receipts"), shape: true},
		{name: "publishing to any topic", edits: withPublish(brokers, "topic_header: destination")},
		{name: "publishing to topics that nothing names", edits: withPublish(brokers, "topic: receipts", "topics: [bills]")},
		{name: "publishing to what is no topic", edits: withPublish(brokers, `topic: "a b"`), shape: true},
		{name: "publishing to a topic that is read", edits: fromKafka("topics: orders", "topic: orders")},
		{name: "publishing to a topic that a pattern reads", edits: fromKafka(`topic_pattern: "orders.*"`, "topic_header: to", "topics: [receipts, orders-done]")},
		{name: "publishing for longer than a lease", edits: withPublish(brokers, "topic: receipts", "timeout: 40s")},
		{name: "publishing as half of somebody", edits: withPublish(brokers, "topic: receipts", "tls: {cert: me.pem}")},
		{name: "publishing with a password in the file", edits: withPublish(brokers, "topic: receipts", "sasl: {plain: {user: shop, password: hunter2}}"), shape: true},
		{name: "publishing beside an endpoint", edits: append(withPublish(brokers, "topic: receipts"), "      kafka:\n", "      http: {url: \"https://bank.example\"}\n      kafka:\n"), shape: true},
	}
}

func TestAConsumerThatPublishes(t *testing.T) {
	t.Run("E2_it_receives_first_and_waits_ten_seconds", func(t *testing.T) {
		p, faults := parse(acceptedPublishing()[0])
		if p == nil {
			t.Fatal(faultLines(faults))
		}
		c := p.Consumers[0]
		if h := c.Handler.Kafka; h.Timeout != 10*time.Second || h.ClientID != "semel" || c.Workers != leasedWorkers {
			t.Errorf("%+v, %d workers", h, c.Workers)
		}
	})
}
