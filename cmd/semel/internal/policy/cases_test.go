package policy

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// base is a valid policy. Test cases replace parts of this policy.
const base = `version: 1
stores:
  shop:
    sqlite: {path: shop.db}
sources:
  payments:
    file: {path: payments.jsonl, format: envelope}
consumers:
  billing:
    from: payments
    store: shop
    strategy: marker
    identity: {id: "header:ce-id", source: "header:ce-source"}
    handler:
      sql:
        params: {account: "body:/account", amount: "body:/amount"}
        statements:
          - update accounts set balance = balance + :amount where id = :account
`

// policyCase is a variant of the policy base. The field edits has pairs of texts: the second text of each
// pair replaces the first text in base.
type policyCase struct {
	name  string
	edits []string
	// The field want has the expected warnings, one per line, starting with the position.
	want string
	// If the field shape is true, the JSON Schema also finds the fault.
	shape bool
}

func (c policyCase) policy() string {
	if len(c.edits)%2 != 0 {
		panic(c.name + ": edits come in pairs")
	}
	text := base
	for i := 0; i < len(c.edits); i += 2 {
		if !strings.Contains(text, c.edits[i]) {
			panic(c.name + ": nothing to replace: " + c.edits[i])
		}
		text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
	}
	return text
}

// inConsumer returns the edits that add lines to the consumer of the policy base.
func inConsumer(lines ...string) []string {
	return []string{"    handler:\n", "    " + strings.Join(lines, "\n    ") + "\n    handler:\n"}
}

func environment(name string) (string, bool) {
	const signing = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg=="
	values := map[string]string{"SECRET": "hunter2", "EMPTY": "", "WORKERS": "4", "HOLD": "7s",
		"SIGNING": signing, "SHORT": "whsec_aHVudGVyMg==", "USER": "shop:hunter2@", "WEBHOOK_SECRET": signing, "GITHUB_SECRET": "hunter2hunter2hunter2", "KEY": strings.Repeat("A", 43) + "=", "OTHER_KEY": strings.Repeat("B", 42) + "A=", "SHORT_KEY": "aHVudGVyMg=="}
	v, ok := values[name]
	return v, ok
}

func parse(c policyCase) (*Policy, []shape.Fault) {
	return Parse("dir/p.yaml", []byte(c.policy()), environment)
}

// faultLines returns printed faults without the file name.
func faultLines(all []shape.Fault) string {
	var text []string
	for _, f := range all {
		text = append(text, strings.TrimPrefix(f.String(), "dir/p.yaml:"))
	}
	return strings.Join(text, "\n")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// acceptedPolicies returns valid policies. The field want of a test case has the expected warnings.
func acceptedPolicies() []policyCase {
	return slices.Concat(acceptedFiles(), acceptedKafka(), acceptedDedup(), acceptedVersions(), acceptedEffects(), acceptedPrevious(), acceptedHTTP(), acceptedPure(), acceptedPublishing(), acceptedSteps(), acceptedEncryption(), acceptedReplays(), acceptedListens(), acceptedTraces(), acceptedWebhooks(), acceptedCanaries())
}

// withPostgres returns the edits that give the policy base a PostgreSQL store and add lines to its
// consumer.
func withPostgres(lines ...string) []string {
	return append(inConsumer(lines...), "sqlite: {path: shop.db}", "postgres: {url: \"postgres:///shop\"}")
}

// byType returns the edits that replace the handler of the policy base with handlers by message type.
func byType(lines ...string) []string {
	_, handler, _ := strings.Cut(base, "    handler:\n")
	return []string{"    handler:\n" + handler, "    handler:\n      types:\n        " + strings.Join(lines, "\n        ") + "\n"}
}

const constantSource = `"const:shop"`

func acceptedDedup() []policyCase {
	return []policyCase{
		{name: "an adopted table of every column", edits: withPostgres("dedup: {table: public.processed, columns: {id: message_id, consumer: handler, source: origin, processed_at: at}, values: {handler: old billing, state: 2, done: true}}")},
		{name: "an adopted table of ids and a constant source", edits: append(withPostgres("dedup: {table: processed, columns: {id: message_id}}"), `"header:ce-source"`, constantSource)},
		{name: "an adopted table of ids without a source", edits: append(withPostgres("dedup: {table: processed, columns: {id: message_id}}"), `, source: "header:ce-source"`, "")},
	}
}

func acceptedFiles() []policyCase {
	return []policyCase{
		{name: "the base"},
		{name: "every key of a consumer", edits: inConsumer(
			"fingerprint: [\"body:/account\", \"body:/amount\"]", "on_conflict: halt", "on_bad_identity: halt", "on_precondition: retry",
			"on_parked: skip", "on_store_down: pause", "lanes: none", "workers: 2", "batch: {max_size: 10, max_time: 20ms}", "timeout: 5s",
			"max_in_memory_wait: 1m", "max_unacked: {messages: 100, bytes: 1MiB}", "drain: 10s", "retention: forever",
			"retry: {max_attempts: 3, initial_delay: 100ms, max_delay: 30s, on_exhausted: halt}")},
		{name: "a bound of bodies", edits: append(inConsumer("max_body: 1MiB"), "format: envelope", "format: envelope, max_line: 1MiB")},
		{name: "retention in words", edits: inConsumer("retention: 30d", "on_expired: discard")},
		{name: "retention in full", edits: inConsumer("retention: {keep: 30d, bodies: 7d, delay: 1d, id_time: uuidv7, off: true}")},
		{name: "late where nothing is", edits: inConsumer("on_expired: discard"),
			want: "14:17: warning: consumers.billing.on_expired: no message is too old if markers are kept forever; remove it, or set a retention such as 30d"},
		{name: "a delay where all is kept", edits: inConsumer("retention: {delay: 1d}"),
			want: "14:16: warning: consumers.billing.retention: markers are kept forever, so the other keys have no effect; write only forever, or a duration such as keep: 30d"},
		{name: "a body longer than a line", edits: inConsumer("max_body: 32MiB"),
			want: "14:15: warning: consumers.billing.max_body: sources.payments.file.max_line already limits messages to 16MiB; raise that too, or remove max_body"},
		{name: "a type in the body of lines that are bodies", edits: append(inConsumer("filter: {type: payment}\n    type: \"body:/type\""), "format: envelope", "format: json", `identity: {id: "header:ce-id", source: "header:ce-source"}`, `identity: {id: "body:/id"}`)},
		{name: "a type in a header", edits: inConsumer(`type: "header:event-type"`)},
		{name: "a connection string in a file", edits: []string{"sqlite: {path: shop.db}", "postgres: {url_file: secrets/url}"}},
		{name: "a password in a file", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgres://shop@db/shop\", password_file: secrets/password}"}},
		{name: "a constant of its parameter's type", edits: []string{`amount: "body:/amount"`, `amount: {from: "const:10", type: decimal}`}},
		{name: "parameters of types", edits: []string{`amount: "body:/amount"`, `amount: {from: "body:/amount?", type: decimal}`}},
		{name: "a parameter in the long form", edits: []string{`amount: "body:/amount"`, `amount: {from: "body:/amount"}`}},
		{name: "handlers by type", edits: byType(`"payment.made": {sql: {params: {a: "body:/a"}, statements: ["insert into made values (:a)"]}}`,
			`"payment.made@2": {sql: {statements: [{sql: "insert into made values (2)", rows: 1}]}}`)},
		{name: "a handler by type that adds, naturally", edits: append(byType(`made: {sql: {statements: ["update t set n = n + 1"]}}`), "strategy: marker", "strategy: {natural: {because: I say so}}"),
			want: "16:35: warning: consumers.billing.handler.types[\"made\"].sql.statements[0]: the strategy is natural, and this statement does not look idempotent: it computes column n from itself, so a second copy would add again; set a state instead of changing it, add a conflict clause, or use strategy: marker"},
		{name: "a shared source", edits: inConsumer("filter: {type: [payment.made, payment.undone], \"header:region\": eu}", "on_filtered: park")},
		{name: "a shared source with a type that has no handler", edits: append(byType(`pay@2: {sql: {statements: [select 1]}}`),
			"    handler:\n", "    filter: {type: [pay, refund]}\n    handler:\n"),
			want: "14:20: warning: consumers.billing.filter.type: type \"refund\" is included but has no handler: its messages end with the reason \"unknown type\"; add a handler for it, or remove it here"},
		{name: "a shared source by a header with a blank", edits: inConsumer(`filter: {"header:the region": eu}`),
			want: "14:35: warning: consumers.billing.filter.header:the region: the name \"the region\" contains a blank, which is unusual for a header; messages without this header are excluded; check that the producer uses this name"},
		{name: "a setting of the transaction in batches of one", edits: append(inConsumer("batch: {max_size: 1}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres://db/shop\"}",
			"- update", "- select set_config('app.tenant', :account, true)\n          - update")},
		{name: "only of an extension", edits: append(inConsumer(`filter: {type: made, "header:CE-Region": eu}`), "format: envelope", "format: cloudevents")},
		{name: "filter of a header that no event has", edits: append(inConsumer(`filter: {"header:region": eu}`), "format: envelope", "format: cloudevents"),
			want: `14:31: warning: consumers.billing.filter.header:region: source payments has the format cloudevents, whose headers all begin with ce-, so every message is excluded; write header:ce- and the name of the attribute, such as header:ce-region`},
		{name: "every key of stores and sources", edits: []string{
			"sqlite: {path: shop.db}", "sqlite: {path: /var/shop.db, prefix: app_}\n    migrate: true\n    setup: setup.sql",
			"format: envelope", "format: json, follow: true, max_line: 1MiB"}},
		{name: "PostgreSQL", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgres://shop:${SECRET}@db:5432/shop?sslmode=require\", schema: Messages, prefix: once_}"}},
		{name: "PostgreSQL's own operators", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgresql:///shop\"}", "id = :account", "id = :account::text and extra ? 'a' and tags @> $x$a$x$"}},
		{name: "an upsert", edits: []string{"- update accounts set balance = balance + :amount where id = :account", "- upsert: {table: shop.accounts, key: [account], version: amount}"}},
		{name: "an upsert that counts its rows", edits: []string{"- update accounts set balance = balance + :amount where id = :account",
			"- rows: 1\n            otherwise: discard\n            upsert: {table: accounts, key: [account], version: amount}"}},
		{name: "a statement with options", edits: []string{"- update", "- rows: 1\n            otherwise: discard\n            sql: update"}},
		{name: "business key of several fields", edits: []string{`id: "header:ce-id"`, `id: ["body:/order", "body:/line", "const:v1"]`}},
		{name: "business key with a type", edits: []string{`id: "header:ce-id"`, `id: [type, "body:/order"]`}},
		{name: "optional source", edits: []string{`"header:ce-source"`, `"header:ce-source?"`}},
		{name: "strategy as a map", edits: []string{"strategy: marker", "strategy: {marker: true, business_key: {constraint: payments.id}}"}},
		{name: "business key alone", edits: []string{"strategy: marker", "strategy: {business_key: {constraint: payments.id}}"}},
		{name: "business key without identity", edits: []string{"strategy: marker", "strategy: {business_key: {constraint: payments.id}}",
			"    identity: {id: \"header:ce-id\", source: \"header:ce-source\"}\n", ""}},
		{name: "natural without identity", edits: []string{"strategy: marker", "strategy: {natural: {order: irrelevant}}",
			"    identity: {id: \"header:ce-id\", source: \"header:ce-source\"}\n", "", "balance = balance + :amount", "balance = :amount"}},
		{name: "natural that adds", edits: []string{"strategy: marker", "strategy: {natural: {because: I say so}}"},
			want: "18:13: warning: consumers.billing.handler.sql.statements[0]: the strategy is natural, and this statement does not look idempotent: it computes column balance from itself, so a second copy would add again; set a state instead of changing it, add a conflict clause, or use strategy: marker"},
		{name: "natural that inserts", edits: []string{"strategy: marker", "strategy: {natural: {because: I say so}}",
			"update accounts set balance = balance + :amount where id = :account", "insert into entries values (:account, :amount)"},
			want: "18:13: warning: consumers.billing.handler.sql.statements[0]: the strategy is natural, and this statement does not look idempotent: it inserts without a conflict clause, so a second copy would insert again or fail; set a state instead of changing it, add a conflict clause, or use strategy: marker"},
		{name: "environment", edits: append(inConsumer(`workers: ${WORKERS}`, `max_in_memory_wait: "${HOLD}"`, `lanes: ${LANES:-none}`, `timeout: 1${SUFFIX:-5s}`, "drain: 15s"),
			"path: shop.db", `path: "${EMPTY:-x}/$${y}.db"`)},
		{name: "tags that say what is there", edits: []string{"payments.jsonl", "!!str payments.jsonl"}},
		{name: "an alias", edits: inConsumer("timeout: &wait 20s", "drain: *wait")},
		{name: "the first wait follows hold", edits: inConsumer("max_in_memory_wait: 500ms")},
		{name: "inbox", edits: append([]string{"strategy: marker", "strategy: inbox"}, inConsumer("inbox: {lease: 10s, poll: 200ms, max_crashes: 5}")...)},
		{name: "receipt", edits: append([]string{"strategy: marker", "strategy: {inbox: true, business_key: {constraint: payments.id}}"},
			inConsumer("ack: after_receipt", "alerts: {pending_age: 1h}")...)},
		{name: "lanes by key", edits: inConsumer("lanes: key")},
		{name: "lanes by key behind a receipt", edits: append([]string{"strategy: marker", "strategy: inbox"},
			inConsumer("lanes: key", "ack: after_receipt", "alerts: {pending_age: 1h}")...)},
		{name: "followers that wait", edits: inConsumer("on_parked: block")},
		{name: "lanes by key behind a receipt that pass", edits: append([]string{"strategy: marker", "strategy: inbox"},
			inConsumer("lanes: key", "on_parked: skip", "ack: after_receipt", "alerts: {pending_age: 1h}")...),
			want: "15:16: warning: consumers.billing.on_parked: messages are received in order, but with skip they are processed from the inbox in any order; write on_parked: block, or let version keep the order"},
		{name: "a wait in the store", edits: inConsumer("retry: {max_attempts: 20, initial_delay: 1s, max_delay: 1d}", "inbox: {poll: 5s}")},
		{name: "keep_first without fingerprint", edits: inConsumer("fingerprint: none", "on_conflict: keep_first"),
			want: "15:18: warning: consumers.billing.on_conflict: without a fingerprint no conflict is found: other content counts as a duplicate; remove it, or write fingerprint: body"},
		{name: "a stop shorter than a handler", edits: inConsumer("drain: 1s"),
			want: "14:12: warning: consumers.billing.drain: a shutdown waits 1s for a handler that may run for 30s, and then abandons it; raise drain to at least timeout; no message is lost either way"},
		{name: "a batch longer than a handler", edits: inConsumer("timeout: 10ms"),
			want: "10:5: warning: consumers.billing.batch.max_time: a batch may run longer than a handler; lower it to at most timeout"},
		{name: "something unused", edits: []string{"consumers:", "  spare:\n    file: {path: \"-\"}\nconsumers:"},
			want: "9:5: warning: sources.spare: no consumer uses it; remove it, or use it in a consumer"},
	}
}

func TestPoliciesWithoutFaults(t *testing.T) {
	for _, c := range acceptedPolicies() {
		t.Run(c.name, func(t *testing.T) {
			p, faults := parse(c)
			if len(faults) > 0 {
				t.Fatalf("faults:\n%s", faultLines(faults))
			}
			if got := faultLines(p.Warnings); got != c.want {
				t.Errorf("warnings:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// Daily partitions of markers work in PostgreSQL only, so the case of daily partitions is not in the list of
// accepted policies.
func TestDaysOfMarkersInPostgreSQL(t *testing.T) {
	for _, ids := range []string{"uuidv7", "ulid", "snowflake"} {
		p, faults := parse(policyCase{edits: withPostgres("retention: {keep: 30d, id_time: " + ids + ", daily_partitions: true}")})
		if p == nil || !p.Consumers[0].Retention.DailyPartitions || len(p.Warnings) > 0 {
			t.Errorf("%s: %s", ids, faultLines(faults))
		}
	}
}

// TestPoliciesWithFaults compares faults with testdata/faults.txt. The test flag -update rewrites
// testdata/faults.txt; review the changes.
func TestPoliciesWithFaults(t *testing.T) {
	want := sections(read(t, golden))
	var now strings.Builder
	for _, c := range refusedPolicies() {
		t.Run(c.name, func(t *testing.T) {
			p, faults := parse(c)
			got := faultLines(faults)
			fmt.Fprintf(&now, "== %s\n%s\n", c.name, got)
			if !*update && (got != want[c.name] || p != nil || got == "") {
				t.Errorf("faults:\n%s\nwant:\n%s", got, want[c.name])
			}
		})
	}
	if *update {
		if err := os.WriteFile(golden, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const golden = "testdata/faults.txt"

var update = flag.Bool("update", false, "write the expected output anew")

// sections splits text at lines "== name" and returns the text of each section by name.
func sections(text string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Split("\n"+text, "\n== ")[1:] {
		name, body, _ := strings.Cut(s, "\n")
		all[name] = strings.TrimSuffix(body, "\n")
	}
	return all
}
