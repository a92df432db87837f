package policy

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
)

// withWebhook returns the edits that give the policy base a webhook source and strategy inbox. The
// parameter keys has further keys of the source, which can also replace the usual keys.
func withWebhook(keys string, edits ...string) []string {
	source := `webhook: {listen: "127.0.0.1:8080", path: /hooks, `
	for _, usual := range []string{"scheme: github", `secret: "${GITHUB_SECRET}"`} {
		if !strings.Contains(keys, usual[:strings.Index(usual, ":")+1]) {
			source += usual + ", "
		}
	}
	return append([]string{
		"file: {path: payments.jsonl, format: envelope}", source + keys + "}",
		`{id: "header:ce-id", source: "header:ce-source"}`, `{id: "body:/id"}`,
		"strategy: marker", "strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}",
	}, edits...)
}

func acceptedWebhooks() []policyCase {
	return []policyCase{
		{name: "webhooks", edits: withWebhook("")},
		{name: "every key of webhooks", edits: withWebhook(`scheme: stripe, tolerance: 1m, max_body: 1MiB, in_hand: {messages: 10, bytes: 2MiB}, wait: 5s, repeats: 3d, connections: 9, tls: {cert: a.pem, key: b.pem}, unsigned: {headers: [x-a, x-b], because: so}`)},
		{name: "two secrets of webhooks", edits: withWebhook(`scheme: standard_webhooks, secret: ["${SIGNING}", "${WEBHOOK_SECRET}"]`, "body:/id", "header:Webhook-ID")},
		{name: "a declared header of webhooks", edits: withWebhook("unsigned: {headers: X-GitHub-Delivery, because: so}", "body:/id", "header:x-github-delivery")},
		{name: "webhooks of another scheme", edits: withWebhook(`scheme: hmac, hmac: {header: x-sign, prefix: "v0=", signed: "{id}.{timestamp}.{body}", id: x-id, timestamp: x-time}`, "body:/id", "header:x-id")},
		{name: "webhooks for everybody without tls", edits: withWebhook("", "127.0.0.1:8080", "0.0.0.0:8080"),
			want: "7:14: warning: sources.payments.webhook.tls: requests are sent in plain text, because there is no tls; write tls: {cert: FILE, key: FILE}, or listen on 127.0.0.1 behind a proxy with TLS"},
	}
}

func refusedWebhooks() []policyCase {
	return []policyCase{
		{name: "webhooks without a secret", edits: withWebhook("secret: \"${EMPTY}\"")},
		{name: "webhooks with a secret in the file", edits: withWebhook("secret: hunter2hunter2hunter2"), shape: true},
		{name: "webhooks with a short secret", edits: withWebhook(`secret: "${SECRET}"`)},
		{name: "webhooks with a secret of another scheme", edits: withWebhook(`scheme: standard_webhooks`, "body:/id", "header:webhook-id")},
		{name: "webhooks of an unknown scheme", edits: withWebhook("scheme: githup"), shape: true},
		{name: "webhooks of hmac that is not said", edits: withWebhook("scheme: hmac")},
		{name: "webhooks of hmac beside another scheme", edits: withWebhook("hmac: {header: x-sign}")},
		{name: "webhooks that sign no body", edits: withWebhook(`scheme: hmac, hmac: {header: x-sign, signed: "v0"}`)},
		{name: "webhooks with a tolerance of no time", edits: withWebhook("tolerance: 1m")},
		{name: "webhooks with unsigned headers for no reason", edits: withWebhook("unsigned: {headers: [x-a]}"), shape: true},
		{name: "webhooks with credentials", edits: withWebhook("unsigned: {headers: [Authorization], because: so}")},
		{name: "webhooks by a header that nobody signed", edits: withWebhook("", "body:/id", "header:x-github-delivery")},
		{name: "webhooks by an attribute", edits: withWebhook("", "\"body:/id\"", "id")},
		{name: "webhooks without an inbox", edits: withWebhook("", "strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}", "strategy: marker")},
		{name: "webhooks that wait for their effect", edits: withWebhook("", "    ack: after_receipt\n    alerts: {pending_age: 60s}\n", "")},
		{name: "webhooks at an address of nobody", edits: withWebhook("", "127.0.0.1:8080", "8080")},
		{name: "webhooks at a path that is none", edits: withWebhook("", "/hooks", "hooks"), shape: true},
		{name: "webhooks at a path with escapes", edits: withWebhook("", "/hooks", "/a%20hook"), shape: true},
		{name: "webhooks with less room than a body", edits: withWebhook("in_hand: {bytes: 1MiB}")},
		{name: "webhooks with bodies that nobody processes", edits: withWebhook("max_body: 32MiB")},
		{name: "webhooks with half of a certificate", edits: withWebhook("tls: {cert: a.pem}"), shape: true},
		{name: "webhooks that are replayed", edits: withWebhook("", "    strategy: inbox\n", "    strategy: inbox\n    replay: {allowed: true}\n    effect: {kind: projection, says: so}\n")},
		{name: "webhooks in the order of keys", edits: withWebhook("", "    strategy: inbox\n", "    strategy: inbox\n    lanes: key\n    on_parked: block\n")},
		{name: "webhooks that are forgotten", edits: withWebhook("", "    strategy: inbox\n", "    strategy: inbox\n    retention: 30d\n")},
		{name: "webhooks with dead letters", edits: withWebhook("", "    strategy: inbox\n", "    strategy: inbox\n    on_conflict: dead_letter\n")},
	}
}

func TestWhatKeepsTheOrderOfWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		keys string
		want consumer.LaneMode
	}{
		"F3_nothing_unless_the_file_says": {"", consumer.LanesNone},
		"F3_their_coming_where_it_says":   {"    lanes: partition\n", consumer.LanesPartition},
		"F3_what_waits_where_it_says":     {"    on_parked: block\n", consumer.LanesPartition},
	} {
		t.Run(name, func(t *testing.T) {
			p, faults := parse(policyCase{edits: withWebhook("", "    strategy: inbox\n", "    strategy: inbox\n"+c.keys)})
			if p == nil || p.Consumers[0].Config().Lanes != c.want {
				t.Errorf("%v, want lanes by %v: %s", p, c.want, faultLines(faults))
			}
		})
	}
}

func TestSourcesOfWebhooksAtOneAddress(t *testing.T) {
	second := func(keys string) policyCase {
		text := strings.Join([]string{"  more:", `    webhook: {listen: "127.0.0.1:8080", scheme: github, secret: "${GITHUB_SECRET}", ` + keys + "}", "consumers:", "  other:",
			"    from: more", "    store: shop", "    strategy: inbox", "    ack: after_receipt", "    alerts: {pending_age: 60s}", `    identity: {id: "body:/id"}`,
			`    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into a values (:id)"]}}`, ""}, "\n")
		return policyCase{edits: withWebhook("", "consumers:\n", text)}
	}
	for name, c := range map[string]struct {
		keys, want string
	}{
		"F3_with_paths_of_their_own":   {"path: /more", ""},
		"F3_with_one_path":             {"path: /hooks", "has the same address and path"},
		"F3_with_other_bounds":         {"path: /more, connections: 7", "has another value for the same address"},
		"F3_with_a_certificate_at_one": {"path: /more, tls: {cert: a, key: b}", "has another value for the same address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := parse(second(c.keys))
			if text := strings.Join(texts(faults), "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("%s", text)
			}
		})
	}
	t.Run("F3_a_source_is_for_one_consumer", func(t *testing.T) {
		c := second("path: /more")
		c.edits = append(c.edits, "from: more", "from: payments")
		_, faults := parse(c)
		if text := strings.Join(texts(faults), "\n"); !strings.Contains(text, "a request reaches only one of them") {
			t.Errorf("%s", text)
		}
	})
}

func texts(faults []shape.Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.Error())
	}
	return all
}
