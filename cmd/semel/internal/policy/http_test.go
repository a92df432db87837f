package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
)

// endpoint returns the edits that replace the handler of the policy base with an HTTP handler that has
// further keys.
func endpoint(keys ...string) []string {
	_, handler, _ := strings.Cut(base, "    handler:\n")
	all := append([]string{`url: "https://bank.example/charge"`}, keys...)
	return []string{"    handler:\n" + handler, "    handler:\n      http:\n        " + strings.Join(all, "\n        ") + "\n"}
}

// withHTTP returns the edits for a consumer with an HTTP handler, the given strategy and further
// keys of the consumer.
func withHTTP(strategy string, keys ...string) []string {
	return slices.Concat([]string{"    strategy: marker\n", "    " + strings.Join(append([]string{strategy}, keys...), "\n    ") + "\n"}, endpoint())
}

// withValidHTTP returns the edits for a valid consumer with an HTTP handler.
func withValidHTTP(keys ...string) []string {
	return withHTTP("strategy: lease", append([]string{"alerts: {pending_age: 1m}"}, keys...)...)
}

// withHTTPKeys returns the edits for a valid consumer whose HTTP handler has further keys.
func withHTTPKeys(keys ...string) []string {
	return slices.Concat(withValidHTTP()[:2], endpoint(keys...))
}

// effects is a line of YAML with the statements and intents that a response may name.
const effects = `effects: {statements: {debit: {sql: "update accounts set balance = balance - :amount where id = :account", params: {account: text, amount: decimal}, rows: 1}}}`

const signEdit = `sign: {secret: "${SIGNING}"}`

func acceptedHTTP() []policyCase {
	return []policyCase{
		{name: "an endpoint", edits: withValidHTTP()},
		{name: "an endpoint in the map of strategies", edits: withHTTP("strategy: {lease: true}", "ack: after_receipt", "alerts: {pending_age: 1m}")},
		{name: "an endpoint with all keys", edits: withHTTPKeys(`headers: {Authorization: "Bearer ${SECRET}", X-Shop: north}`, "pass: [x-tenant, x-region]", "timeout: 5s",
			"max_retry_after: 10m", signEdit, "tls: {ca: ca.pem, cert: me.pem, key: me.key}")},
		{name: "an endpoint of two secrets", edits: withHTTPKeys(`sign: {secret: ["${SIGNING}", "${SIGNING}"]}`)},
		{name: "an endpoint of the environment", edits: []string{base[strings.Index(base, "    strategy:"):], strings.ReplaceAll(
			"    strategy: lease\n    identity: {id: id}\n    alerts: {pending_age: 1m}\n    handler: {http: {url: \"URL\"}}\n", "URL", "http://${HOST:-localhost}:8080/")}},
		{name: "a slow endpoint", edits: append(withValidHTTP("timeout: 3m", "drain: 3m", "inbox: {lease: 4m}"), `url: "https://bank.example/charge"`, "url: \"https://bank.example/charge\"\n        timeout: 3m")},
		{name: "a call longer than a stop", edits: append(withValidHTTP("timeout: 30s", "drain: 3s", "inbox: {lease: 1m}"), `url: "https://bank.example/charge"`, "url: \"https://bank.example/charge\"\n        timeout: 5s"),
			want: "21:18: warning: consumers.billing.handler.http.timeout: a shutdown waits 3s for a call that may take 5s, and then cancels it: the call is repeated; raise drain of the consumer to at least that"},
		{name: "an endpoint that knows keys for long", edits: withHTTPKeys("window: 7d")},
		{name: "an endpoint that never forgets a key", edits: withHTTPKeys("window: forever")},
		{name: "an endpoint that knows no keys", edits: withHTTPKeys("window: none")},
		{name: "credentials in clear", edits: append(withHTTPKeys(`headers: {Authorization: "Bearer ${SECRET}"}`), "https://bank.example", "HTTP://bank.example"),
			want: "18:18: warning: consumers.billing.handler.http.headers: the credentials are sent in plain text, because the URL begins with http:; write https:"},
		{name: "credentials that stay here", edits: append(withHTTPKeys(`headers: {Authorization: "Bearer ${SECRET}"}`), "https://bank.example", "http://127.0.0.1")},
		{name: "calls without a key that may happen twice", edits: withHTTPKeys("key: none", `may_double: "a second mail does no harm"`)},
		{name: "calls without a key that may be lost", edits: withHTTPKeys("key: none", `may_be_lost: "a sample of the visits is enough"`)},
		{name: "calls with a key", edits: withHTTPKeys("key: idempotency_key")},
		{name: "effects in the answer", edits: append(withHTTPKeys(effects), "effects:", "timeout: 5s\n        effects:")},
		{name: "effects of all types", edits: withHTTPKeys(`effects: {statements: {put: {sql: "insert into t values (:a, :b, :c, :d, :e, :f)", params: {a: "text?", b: integer, c: "decimal?", d: boolean, e: json, f: timestamp}, otherwise: park, rows: 1}, none: {sql: "delete from t"}}}`)},
		{name: "effects whose condition is unmet", edits: append(withValidHTTP("on_precondition: retry")[:2], endpoint(effects)...)},
		{name: "calls in batches", edits: withValidHTTP("batch: {max_size: 10}", "on_precondition: retry"),
			want: "14:12: warning: consumers.billing.batch: each call is for one message, and batches are sized automatically; remove it\n" +
				"15:22: warning: consumers.billing.on_precondition: an endpoint cannot report a failed precondition; remove it; retry.on_exhausted decides about rejected calls"},
	}
}

func refusedHTTP() []policyCase {
	plain := []string{"strategy: marker", "strategy: lease"}
	https := `url: "https://bank.example/charge"`
	return []policyCase{
		{name: "an endpoint with a marker", edits: withHTTP("strategy: marker")},
		{name: "an endpoint with an inbox", edits: withHTTP("strategy: inbox", "ack: after_receipt", "alerts: {pending_age: 1m}")},
		{name: "an endpoint by nature", edits: withHTTP("strategy: {natural: {order: irrelevant}}")},
		{name: "an endpoint by a constraint", edits: withHTTP("strategy: {business_key: {constraint: a.b}}")},
		{name: "statements under a lease", edits: append(plain, inConsumer("alerts: {pending_age: 1m}")...)},
		{name: "a lease beside a marker", edits: withHTTP("strategy: {lease: true, marker: true}", "alerts: {pending_age: 1m}")},
		{name: "a lease by nature", edits: withHTTP("strategy: {lease: true, natural: {order: irrelevant}}", "alerts: {pending_age: 1m}")},
		{name: "a lease without an alert", edits: withHTTP("strategy: lease")},
		{name: "calls before the broker is settled", edits: withValidHTTP("ack: after_effect")},
		{name: "versions of calls", edits: withValidHTTP(`version: {stream: "body:/order", number: "body:/version"}`)},
		{name: "days of calls", edits: withValidHTTP("retention: {keep: 30d, id_time: uuidv7, daily_partitions: true}")},
		{name: "an adopted table of calls", edits: append(withValidHTTP("dedup: {table: processed, columns: {id: id, source: origin}}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres:///shop\"}")},
		{name: "a call longer than its lease", edits: withHTTPKeys("timeout: 30s")},
		{name: "a call longer than its consumer's", edits: append(withValidHTTP("inbox: {lease: 5m}"), https, https+"\n        timeout: 1m")},
		{name: "a window that is over before a call", edits: withHTTPKeys("window: 20s")},
		{name: "a window that is none", edits: withHTTPKeys("window: always"), shape: true},
		{name: "no endpoint", edits: append(withHTTPKeys("timeout: 1s"), "        "+https+"\n", ""), shape: true},
		{name: "an endpoint of another scheme", edits: append(withHTTPKeys(), https, `url: "ftp://bank.example/charge"`), shape: true},
		{name: "an endpoint without a host", edits: append(withHTTPKeys(), https, `url: "https:///charge"`)},
		{name: "an endpoint with a user", edits: append(withHTTPKeys(), https, `url: "https://shop:hunter2@bank.example/charge"`), shape: true},
		{name: "an endpoint with a user of the environment", edits: append(withHTTPKeys(), https, `url: "https://${USER}bank.example/charge"`)},
		{name: "an endpoint with a password of the environment", edits: append(withHTTPKeys(), https, `url: "https://shop:${SECRET}@bank.example/charge"`)},
		{name: "an endpoint with a fragment", edits: append(withHTTPKeys(), https, `url: "https://bank.example/#${SECRET}"`)},
		{name: "headers of the connection", edits: withHTTPKeys("headers: {Host: a, Content-Length: \"1\", Idempotency-Key: k, ce-id: x, Connection: close, \"a b\": c}")},
		{name: "headers twice", edits: withHTTPKeys("headers: {X-A: a, x-a: b}")},
		{name: "headers in a list", edits: withHTTPKeys("headers: [a]"), shape: true},
		{name: "a header of two lines", edits: withHTTPKeys(`headers: {X-A: "a\x01b", X-B: "a "}`)},
		{name: "credentials in the file", edits: withHTTPKeys("headers: {Authorization: Bearer hunter2, X-Api-Key: hunter2}")},
		{name: "credentials of a message", edits: withHTTPKeys("pass: [authorization, Cookie, host, ce-id, transfer-encoding]")},
		{name: "a signing secret in the file", edits: withHTTPKeys("sign: {secret: whsec_hunter2}"), shape: true},
		{name: "a signing secret that is none", edits: withHTTPKeys(`sign: {secret: ["${SECRET}", "${SHORT}"]}`)},
		{name: "a certificate of this side without its key", edits: withHTTPKeys("tls: {cert: me.pem}")},
		{name: "a key of this side without its certificate", edits: withHTTPKeys("tls: {key: me.key}")},
		{name: "TLS where nothing is encrypted", edits: append(withHTTPKeys("tls: {ca: ca.pem}"), https, `url: "http://bank.example/charge"`)},
		{name: "calls without a key and a word about it", edits: withHTTPKeys("key: none")},
		{name: "calls without a key that may be both", edits: withHTTPKeys("key: none", `may_double: "x"`, `may_be_lost: "y"`)},
		{name: "calls with a key that may happen twice", edits: withHTTPKeys(`may_double: "a second mail does no harm"`)},
		{name: "calls with a key that may be lost", edits: withHTTPKeys("key: idempotency_key", `may_be_lost: "a sample is enough"`)},
		{name: "calls without a key for no reason", edits: withHTTPKeys("key: none", `may_double: ""`)},
		{name: "calls without a key that is known for a time", edits: withHTTPKeys("key: none", "window: 1h", `may_double: "x"`)},
		{name: "calls with another key", edits: withHTTPKeys("key: header"), shape: true},
		{name: "effects without a statement", edits: withHTTPKeys("effects: {statements: {}}"), shape: true},
		{name: "effects of nothing", edits: withHTTPKeys("effects: {}")},
		{name: "effects with intents for nobody", edits: withHTTPKeys(`effects: {intents: mailr}`)},
		{name: "effects with intents for a consumer with a source", edits: withHTTPKeys(`effects: {intents: [billing]}`)},
		{name: "effects of an unknown type", edits: withHTTPKeys(`effects: {statements: {put: {sql: "insert into t values (:a)", params: {a: int}}}}`), shape: true},
		{name: "effects whose parameters do not fit", edits: withHTTPKeys(`effects: {statements: {put: {sql: "insert into t values (:a)", params: {b: text, "c-d": text}}}}`), shape: true},
		{name: "effects that nobody bound", edits: withHTTPKeys(`effects: {statements: {put: {sql: "insert into t values (:a, :c)", params: {a: text, b: text}}}}`)},
		{name: "effects that commit", edits: withHTTPKeys(`effects: {statements: {end: {sql: "commit"}, two: {sql: "delete from t; delete from u"}, own: {sql: "delete from semel_markers"}}}`)},
		{name: "effects of rows that cannot be counted", edits: withHTTPKeys(`effects: {statements: {see: {sql: "select 1", rows: 1}, put: {sql: "delete from t", otherwise: park}}}`)},
		{name: "a wait that is none", edits: withHTTPKeys("max_retry_after: 1ms")},
	}
}

func TestAConsumerThatCallsOut(t *testing.T) {
	t.Run("K10_one_whose_endpoint_only_answers_marks_and_keeps_no_order", func(t *testing.T) {
		p, faults := parse(policyCase{edits: withPure()})
		if p == nil {
			t.Fatal(faultLines(faults))
		}
		c := p.Consumers[0].Config()
		if c.Strategy != consumer.StrategyMarker || c.AckOnReceipt != false || c.Workers != leasedWorkers || c.Lanes != consumer.LanesNone {
			t.Errorf("%v, %v, %d workers, %v", c.Strategy, c.AckOnReceipt, c.Workers, c.Lanes)
		}
	})
	t.Run("B11_it_has_workers_and_receives_first", func(t *testing.T) {
		p, faults := parse(policyCase{edits: withValidHTTP()})
		if p == nil {
			t.Fatal(faultLines(faults))
		}
		c := p.Consumers[0].Config()
		if c.Strategy != consumer.StrategyInbox || !c.AckOnReceipt || c.Workers != leasedWorkers {
			t.Errorf("%v, %v, %d workers", c.Strategy, c.AckOnReceipt, c.Workers)
		}
		if h := p.Consumers[0].Handler.HTTP; h.Timeout != 10*time.Second || h.MaxRetryAfter != time.Hour {
			t.Errorf("%+v", h)
		}
	})
	for says, want := range map[string]consumer.Provider{
		"may_double":  {Window: consumer.WindowAlways},
		"may_be_lost": {Window: consumer.WindowNever, OnUnknown: consumer.ActionDiscard},
	} {
		t.Run("E5_what_follows_an_unknown_outcome_without_a_key/"+says, func(t *testing.T) {
			p, faults := parse(policyCase{edits: withHTTPKeys("key: none", says+": \"nobody minds\"")})
			if p == nil {
				t.Fatal(faultLines(faults))
			}
			if got := p.Consumers[0].Config().Provider; got.Window != want.Window || got.OnUnknown != want.OnUnknown {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("workers_that_the_file_names_stay", func(t *testing.T) {
		p, faults := parse(policyCase{edits: withValidHTTP("workers: 3")})
		if p == nil || p.Consumers[0].Workers != 3 {
			t.Error(faultLines(faults))
		}
	})
}
