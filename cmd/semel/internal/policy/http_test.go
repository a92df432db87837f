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

// The function calls returns the edits for a consumer with an HTTP handler, the given strategy and further
// keys of the consumer.
func calls(strategy string, keys ...string) []string {
	return slices.Concat([]string{"    strategy: marker\n", "    " + strings.Join(append([]string{strategy}, keys...), "\n    ") + "\n"}, endpoint())
}

// The function called returns the edits for a valid consumer with an HTTP handler.
func called(keys ...string) []string {
	return calls("strategy: lease", append([]string{"alerts: {pending_age: 1m}"}, keys...)...)
}

// The function with returns the edits for a valid consumer whose HTTP handler has further keys.
func with(keys ...string) []string {
	return slices.Concat(called()[:2], endpoint(keys...))
}

// effects is a line of YAML with the statements and intents that a response may name.
const effects = `effects: {statements: {debit: {sql: "update accounts set balance = balance - :amount where id = :account", params: {account: text, amount: decimal}, rows: 1}}}`

const signing = `sign: {secret: "${SIGNING}"}`

func acceptedHTTP() []policyCase {
	return []policyCase{
		{name: "an endpoint", edits: called()},
		{name: "an endpoint in the map of strategies", edits: calls("strategy: {lease: true}", "ack: after_receipt", "alerts: {pending_age: 1m}")},
		{name: "an endpoint with all keys", edits: with(`headers: {Authorization: "Bearer ${SECRET}", X-Shop: north}`, "pass: [x-tenant, x-region]", "timeout: 5s",
			"max_retry_after: 10m", signing, "tls: {ca: ca.pem, cert: me.pem, key: me.key}")},
		{name: "an endpoint of two secrets", edits: with(`sign: {secret: ["${SIGNING}", "${SIGNING}"]}`)},
		{name: "an endpoint of the environment", edits: []string{base[strings.Index(base, "    strategy:"):], strings.ReplaceAll(
			"    strategy: lease\n    identity: {id: id}\n    alerts: {pending_age: 1m}\n    handler: {http: {url: \"URL\"}}\n", "URL", "http://${HOST:-localhost}:8080/")}},
		{name: "a slow endpoint", edits: append(called("timeout: 3m", "drain: 3m", "inbox: {lease: 4m}"), `url: "https://bank.example/charge"`, "url: \"https://bank.example/charge\"\n        timeout: 3m")},
		{name: "a call longer than a stop", edits: append(called("timeout: 30s", "drain: 3s", "inbox: {lease: 1m}"), `url: "https://bank.example/charge"`, "url: \"https://bank.example/charge\"\n        timeout: 5s"),
			want: "21:18: warning: consumers.billing.handler.http.timeout: a shutdown waits 3s for a call that may take 5s, and then cancels it: the call is repeated; raise drain of the consumer to at least that"},
		{name: "an endpoint that knows keys for long", edits: with("window: 7d")},
		{name: "an endpoint that never forgets a key", edits: with("window: forever")},
		{name: "an endpoint that knows no keys", edits: with("window: none")},
		{name: "credentials in clear", edits: append(with(`headers: {Authorization: "Bearer ${SECRET}"}`), "https://bank.example", "HTTP://bank.example"),
			want: "18:18: warning: consumers.billing.handler.http.headers: the credentials are sent in plain text, because the URL begins with http:; write https:"},
		{name: "credentials that stay here", edits: append(with(`headers: {Authorization: "Bearer ${SECRET}"}`), "https://bank.example", "http://127.0.0.1")},
		{name: "calls without a key that may happen twice", edits: with("key: none", `may_double: "a second mail does no harm"`)},
		{name: "calls without a key that may be lost", edits: with("key: none", `may_be_lost: "a sample of the visits is enough"`)},
		{name: "calls with a key", edits: with("key: idempotency_key")},
		{name: "effects in the answer", edits: append(with(effects), "effects:", "timeout: 5s\n        effects:")},
		{name: "effects of all types", edits: with(`effects: {statements: {put: {sql: "insert into t values (:a, :b, :c, :d, :e, :f)", params: {a: "text?", b: integer, c: "decimal?", d: boolean, e: json, f: timestamp}, otherwise: park, rows: 1}, none: {sql: "delete from t"}}}`)},
		{name: "effects whose condition is unmet", edits: append(called("on_precondition: retry")[:2], endpoint(effects)...)},
		{name: "calls in batches", edits: called("batch: {max_size: 10}", "on_precondition: retry"),
			want: "14:12: warning: consumers.billing.batch: each call is for one message, and batches are sized automatically; remove it\n" +
				"15:22: warning: consumers.billing.on_precondition: an endpoint cannot report a failed precondition; remove it; retry.on_exhausted decides about rejected calls"},
	}
}

func refusedHTTP() []policyCase {
	plain := []string{"strategy: marker", "strategy: lease"}
	https := `url: "https://bank.example/charge"`
	return []policyCase{
		{name: "an endpoint with a marker", edits: calls("strategy: marker")},
		{name: "an endpoint with an inbox", edits: calls("strategy: inbox", "ack: after_receipt", "alerts: {pending_age: 1m}")},
		{name: "an endpoint by nature", edits: calls("strategy: {natural: {order: irrelevant}}")},
		{name: "an endpoint by a constraint", edits: calls("strategy: {business_key: {constraint: a.b}}")},
		{name: "statements under a lease", edits: append(plain, inConsumer("alerts: {pending_age: 1m}")...)},
		{name: "a lease beside a marker", edits: calls("strategy: {lease: true, marker: true}", "alerts: {pending_age: 1m}")},
		{name: "a lease by nature", edits: calls("strategy: {lease: true, natural: {order: irrelevant}}", "alerts: {pending_age: 1m}")},
		{name: "a lease without an alert", edits: calls("strategy: lease")},
		{name: "calls before the broker is settled", edits: called("ack: after_effect")},
		{name: "versions of calls", edits: called(`version: {stream: "body:/order", number: "body:/version"}`)},
		{name: "days of calls", edits: called("retention: {keep: 30d, id_time: uuidv7, daily_partitions: true}")},
		{name: "an adopted table of calls", edits: append(called("dedup: {table: processed, columns: {id: id, source: origin}}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres:///shop\"}")},
		{name: "a call longer than its lease", edits: with("timeout: 30s")},
		{name: "a call longer than its consumer's", edits: append(called("inbox: {lease: 5m}"), https, https+"\n        timeout: 1m")},
		{name: "a window that is over before a call", edits: with("window: 20s")},
		{name: "a window that is none", edits: with("window: always"), shape: true},
		{name: "no endpoint", edits: append(with("timeout: 1s"), "        "+https+"\n", ""), shape: true},
		{name: "an endpoint of another scheme", edits: append(with(), https, `url: "ftp://bank.example/charge"`), shape: true},
		{name: "an endpoint without a host", edits: append(with(), https, `url: "https:///charge"`)},
		{name: "an endpoint with a user", edits: append(with(), https, `url: "https://shop:hunter2@bank.example/charge"`), shape: true},
		{name: "an endpoint with a user of the environment", edits: append(with(), https, `url: "https://${USER}bank.example/charge"`)},
		{name: "an endpoint with a password of the environment", edits: append(with(), https, `url: "https://shop:${SECRET}@bank.example/charge"`)},
		{name: "an endpoint with a fragment", edits: append(with(), https, `url: "https://bank.example/#${SECRET}"`)},
		{name: "headers of the connection", edits: with("headers: {Host: a, Content-Length: \"1\", Idempotency-Key: k, ce-id: x, Connection: close, \"a b\": c}")},
		{name: "headers twice", edits: with("headers: {X-A: a, x-a: b}")},
		{name: "headers in a list", edits: with("headers: [a]"), shape: true},
		{name: "a header of two lines", edits: with(`headers: {X-A: "a\x01b", X-B: "a "}`)},
		{name: "credentials in the file", edits: with("headers: {Authorization: Bearer hunter2, X-Api-Key: hunter2}")},
		{name: "credentials of a message", edits: with("pass: [authorization, Cookie, host, ce-id, transfer-encoding]")},
		{name: "a signing secret in the file", edits: with("sign: {secret: whsec_hunter2}"), shape: true},
		{name: "a signing secret that is none", edits: with(`sign: {secret: ["${SECRET}", "${SHORT}"]}`)},
		{name: "a certificate of this side without its key", edits: with("tls: {cert: me.pem}")},
		{name: "a key of this side without its certificate", edits: with("tls: {key: me.key}")},
		{name: "TLS where nothing is encrypted", edits: append(with("tls: {ca: ca.pem}"), https, `url: "http://bank.example/charge"`)},
		{name: "calls without a key and a word about it", edits: with("key: none")},
		{name: "calls without a key that may be both", edits: with("key: none", `may_double: "x"`, `may_be_lost: "y"`)},
		{name: "calls with a key that may happen twice", edits: with(`may_double: "a second mail does no harm"`)},
		{name: "calls with a key that may be lost", edits: with("key: idempotency_key", `may_be_lost: "a sample is enough"`)},
		{name: "calls without a key for no reason", edits: with("key: none", `may_double: ""`)},
		{name: "calls without a key that is known for a time", edits: with("key: none", "window: 1h", `may_double: "x"`)},
		{name: "calls with another key", edits: with("key: header"), shape: true},
		{name: "effects without a statement", edits: with("effects: {statements: {}}"), shape: true},
		{name: "effects of nothing", edits: with("effects: {}")},
		{name: "effects with intents for nobody", edits: with(`effects: {intents: mailr}`)},
		{name: "effects with intents for a consumer with a source", edits: with(`effects: {intents: [billing]}`)},
		{name: "effects of an unknown type", edits: with(`effects: {statements: {put: {sql: "insert into t values (:a)", params: {a: int}}}}`), shape: true},
		{name: "effects whose parameters do not fit", edits: with(`effects: {statements: {put: {sql: "insert into t values (:a)", params: {b: text, "c-d": text}}}}`), shape: true},
		{name: "effects that nobody bound", edits: with(`effects: {statements: {put: {sql: "insert into t values (:a, :c)", params: {a: text, b: text}}}}`)},
		{name: "effects that commit", edits: with(`effects: {statements: {end: {sql: "commit"}, two: {sql: "delete from t; delete from u"}, own: {sql: "delete from semel_markers"}}}`)},
		{name: "effects of rows that cannot be counted", edits: with(`effects: {statements: {see: {sql: "select 1", rows: 1}, put: {sql: "delete from t", otherwise: park}}}`)},
		{name: "a wait that is none", edits: with("max_retry_after: 1ms")},
	}
}

func TestAConsumerThatCallsOut(t *testing.T) {
	t.Run("K10_one_whose_endpoint_only_answers_marks_and_keeps_no_order", func(t *testing.T) {
		p, faults := parse(policyCase{edits: pured()})
		if p == nil {
			t.Fatal(lines(faults))
		}
		c := p.Consumers[0].Config()
		if c.Strategy != consumer.StrategyMarker || c.AckOnReceipt != false || c.Workers != leasedWorkers || c.Lanes != consumer.LanesNone {
			t.Errorf("%v, %v, %d workers, %v", c.Strategy, c.AckOnReceipt, c.Workers, c.Lanes)
		}
	})
	t.Run("B11_it_has_workers_and_receives_first", func(t *testing.T) {
		p, faults := parse(policyCase{edits: called()})
		if p == nil {
			t.Fatal(lines(faults))
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
			p, faults := parse(policyCase{edits: with("key: none", says+": \"nobody minds\"")})
			if p == nil {
				t.Fatal(lines(faults))
			}
			if got := p.Consumers[0].Config().Provider; got.Window != want.Window || got.OnUnknown != want.OnUnknown {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("workers_that_the_file_names_stay", func(t *testing.T) {
		p, faults := parse(policyCase{edits: called("workers: 3")})
		if p == nil || p.Consumers[0].Workers != 3 {
			t.Error(lines(faults))
		}
	})
}
