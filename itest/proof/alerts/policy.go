//go:build unix

package alerts

import (
	"fmt"
	"strconv"
	"strings"
)

// The names of the consumers. Each consumer's topic and group have the same name.
const (
	billing    = "billing"    // one effect for each message; gets duplicates, conflicts, unknown types and poison messages
	guarded    = "guarded"    // writes markers, and its table has a constraint of its own as a second guard
	calling    = "calling"    // calls an HTTP endpoint, with strategy lease, in both processes
	ordering   = "ordering"   // processes versions of streams
	trailing   = "trailing"   // falls behind its topic
	holding    = "holding"    // writes a row that the fault test locks, so that its handler waits
	cached     = "cached"     // remembers message ids in Redis, and continues if Redis is down
	repeated   = "repeated"   // is replayed
	keeping    = "keeping"    // has a retention
	connecting = "connecting" // in the second process, whose connections are cut
	failing    = "failing"    // in the second process; fails permanently while a row of its table requires it
	joining    = "joining"    // in the second process, whose policy changes
)

// The topics to create, one for each consumer.
var topicsOfAll = []string{billing, guarded, calling, ordering, trailing, holding, cached, repeated, keeping, connecting, failing, joining}

const setup = `create table effects (consumer text not null, id text not null, amount bigint not null);
create table invoices (number text constraint invoices_number unique);
create table gate (n bigint not null);
insert into gate values (0);
create table works (n bigint not null);
insert into works values (1);
`

// The policies: one for the first process and two for the second. The last policy changes the identity of one consumer,
// so that the identity differs from the identity in the store.
const (
	firstPolicy   = "first.yaml"
	secondPolicy  = "second.yaml"
	changedPolicy = "changed.yaml"
)

// The handler of most consumers.
const effect = `    handler:
      sql:
        params: {id: id, amount: "body:/amount"}
        statements:
          - insert into effects (consumer, id, amount) values ('%[1]s', :id, :amount)
`

func plain(name string, more ...string) string {
	text := "  " + name + ":\n    from: " + name + "\n    store: shop\n    identity: {id: id, source: source}\n    workers: 2\n"
	for _, line := range more {
		text += "    " + line + "\n"
	}
	return text + fmt.Sprintf(effect, name)
}

// handlerPolicy returns the policy text of a consumer with its own handler.
func handlerPolicy(name, handler string, more ...string) string {
	text, _, _ := strings.Cut(plain(name, more...), "    handler:\n")
	return text + "    handler:\n" + handler
}

// callPolicy returns the policy text of the handler that calls the endpoint.
func (r *run) callPolicy(path string) string {
	return fmt.Sprintf("      http: {url: \"http://%s%s\", timeout: 1500ms}\n", r.endpoint, path)
}

// write writes the policies and the set-up file.
func (r *run) write() {
	call := handlerPolicy(calling, r.callPolicy("/slow"), "strategy: lease", "inbox: {lease: 2s, poll: 200ms}", "timeout: 2s",
		"effect: {kind: external, says: a second one charges twice}", "retention: forever", "retry: {max_attempts: 1000, initial_delay: 100ms, max_delay: 1s}", "alerts: {pending_age: 15m}")
	first := r.head(strconv.Quote(r.first.address), "${DATABASE}", billing, guarded, calling, ordering, trailing, holding, cached, repeated, keeping) +
		handlerPolicy(billing, "      types:\n        payment.made:\n"+strings.ReplaceAll(strings.TrimPrefix(fmt.Sprintf(effect, billing), "    handler:\n"), "      ", "          "), "retry: {max_attempts: 2, initial_delay: 100ms}") +
		handlerPolicy(guarded, "      sql:\n        params: {id: id}\n        statements: [insert into invoices (number) values (:id)]\n", "strategy: {marker: true, business_key: {constraint: invoices_number}}") +
		call +
		plain(ordering, `version: {stream: "body:/order", number: "body:/version", gap_deadline: 1h}`) +
		handlerPolicy(trailing, "      sql: {statements: [select n from gate for share]}\n", "retry: {max_attempts: 1000}", "lanes: none") +
		handlerPolicy(holding, "      sql: {statements: [update gate set n = n + 1]}\n", "retry: {max_attempts: 1000}", "batch: {max_size: 1}") +
		strings.Replace(handlerPolicy(cached, r.callPolicy("/fast"), "strategy: lease", "lanes: none", "on_store_down: apply", "on_conflict: halt", "on_bad_identity: halt", "retry: {on_exhausted: halt}", "retention: 30d",
			"effect: {kind: cache, says: it is written again}"), "store: shop", "store: keys", 1) +
		plain(repeated, "replay: {allowed: true}") +
		plain(keeping, "retention: 30d")
	first = strings.Replace(first, "sources:\n", fmt.Sprintf("  keys:\n    redis: {addresses: %q}\nsources:\n", r.redis.Address()), 1)
	first = r.withHooks(first)
	second := r.head(fmt.Sprintf("{address: %q, restart_on_outage: 10s}", r.second.address), "${PROXY}", calling, connecting, failing, joining) + call + plain(connecting) +
		handlerPolicy(failing, "      sql: {statements: [select 1 / n from works]}\n") + plain(joining, "on_failure: continue")
	at := strings.LastIndex(second, "{id: id, source: source}")
	changed := second[:at] + `{id: "body:/id"}` + second[at+len("{id: id, source: source}"):]
	for name, text := range map[string]string{"setup.sql": setup, firstPolicy: first, secondPolicy: second, changedPolicy: changed} {
		r.Write(name, text)
	}
}

// head returns the part of a policy that precedes its consumers. The parameter listen is the value of the policy key
// listen.
func (r *run) head(listen, database string, sources ...string) string {
	text := fmt.Sprintf("version: 1\nlisten: %s\nstores:\n  shop:\n    postgres: {url: %q}\n    migrate: true\n    setup: setup.sql\nsources:\n", listen, database)
	for _, name := range sources {
		text += fmt.Sprintf("  %s:\n    kafka: {brokers: %q, topics: [%s], commit_interval: 200ms}\n", name, strings.Join(r.Cluster.Brokers(), ","), name)
	}
	return text + "consumers:\n"
}
