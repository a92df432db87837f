package metrics

import (
	"fmt"
	"strings"
	"time"
)

// alert is one rule, with what its runbook says.
type alert struct {
	name, expr string
	hold       time.Duration
	// severity is page, for what a person has to see now, or ticket.
	severity string
	summary  string
	// means, look and mend are the runbook.
	means, look, mend string
}

// The severities.
const (
	page   = "page"
	ticket = "ticket"
)

// mine are the labels that join figures of one consumer of all its processes.
const mine = "consumer"

// alerts are the rules that ship.
func alerts() []alert {
	all := append(effectsAlerts(), backlogAlerts()...)
	return append(all, operationAlerts()...)
}

func effectsAlerts() []alert {
	return []alert{
		{name: "SemelDoubledEffectCaught", expr: "sum by (" + mine + ") (increase(semel_backstops_total[10m])) > 0", severity: page,
			summary: "a constraint of yours caught an effect that would have been doubled",
			means:   "A message had no marker although its effect was there: markers were deleted or lost, the retention is shorter than copies come late, or somebody writes the effect beside the consumer.",
			look:    "the log line `backstop` names the message; `semel reap status` says how long markers are kept.",
			mend:    "raise `retention`, or restore the markers (`semel migrate seed --consumer NAME --from TABLE --id COLUMN`)."},
		{name: "SemelConflict", expr: "sum by (" + mine + ") (increase(semel_conflicts_total[10m])) > 0", severity: ticket,
			summary: "a known identity came with other content",
			means:   "A producer uses an id for two messages, or changes one under its id, or the fingerprint covers what may change.",
			look:    "`semel parked ls --reason conflict`, and `semel parked show NUMBER`.",
			mend:    "have the producer mint an id a message, or narrow `fingerprint`; then `semel parked discard NUMBER --because WHY`."},
		{name: "SemelDuplicateSpike", expr: duplicateSpike("", 1), hold: 10 * time.Minute, severity: ticket,
			summary: "more than half of what is delivered are copies",
			means:   "No effect is doubled, but work is wasted: a producer sends again, settlements are lost, or offsets were set back.",
			look:    "whether a replay runs (`semel replay status`), or somebody sets offsets back (`semel positions plan`), and the producer's retries.",
			mend:    "mend the producer, or the settling; nothing in Semel."},
		{name: "SemelUnknownType", expr: `sum by (` + mine + `) (increase(semel_set_aside_total{reason="unknown_type"}[10m])) > 0`, severity: ticket,
			summary: "messages of a type came that no handler has",
			means:   "A producer is ahead of this consumer, or the topic is shared and `filter` is missing.",
			look:    "`semel parked summary`.",
			mend:    "deploy the handler and `semel parked retry --all --reason unknown_type --because WHY`, or name the types in `filter`."},
		{name: "SemelResidualRisk", expr: "sum by (" + mine + ") (increase(semel_without_key_total[10m]) + increase(semel_intents_not_sent_again_total[10m])) > 0", severity: ticket,
			summary: "something happened that Semel cannot keep from doubling, or from being lost",
			means:   "Messages were applied while the store of keys was down, or intents were not sent again since the other side may have forgotten their keys.",
			look:    "the log, and `semel reconcile --consumer NAME --file FILE` with what the other side says it has.",
			mend:    "by hand, message by message."},
		{name: "SemelWebhooksRefused", expr: `sum by (` + mine + `) (increase(semel_webhook_requests_total{fate=~"not_signed|malformed|forged|old"}[10m])) > 5`, severity: ticket,
			summary: "webhooks are refused for their signatures",
			means:   "Nothing of them is stored, and nothing is lost while the provider repeats. It signs with a secret that is not known here, a proxy changes bodies, clocks differ, or somebody forges.",
			look:    "`fate` of `semel_webhook_requests_total`: `forged` is a secret or a changed body, `old` a clock, or somebody who sends again what they saw, `not_signed` and `malformed` another scheme; strangers can cause each. Whether others are `received` still; what the provider's page of deliveries says.",
			mend:    "name both secrets, `secret: [\"${NEW}\", \"${OLD}\"]`, have the proxy leave bodies alone, or set the clock; then have the provider send again what it gave up. Against strangers: the proxy, by address."},
	}
}

func backlogAlerts() []alert {
	return []alert{
		{name: "SemelParked", expr: parked("", 1), hold: 5 * time.Minute, severity: ticket,
			summary: "messages were set aside for a person",
			means:   "They had no effect, and nobody tries them again.",
			look:    "`semel parked summary`, by reason.",
			mend:    "mend the cause, then `semel parked retry NUMBER --because WHY`, or `semel parked discard NUMBER --because WHY`."},
		{name: "SemelPendingAge", expr: pendingAge("", 15*time.Minute), hold: 5 * time.Minute, severity: page,
			summary: "a message has waited in the inbox for a quarter of an hour",
			means:   "What was received does not take effect: workers do not keep up, the handler fails, or nobody runs.",
			look:    "`semel inbox ls`, `semel_retries_total`, and whether the consumer is paused (`semel controls`).",
			mend:    "mend the handler, add workers, or `semel resume --consumer NAME --because WHY`."},
		{name: "SemelStaleClaims", expr: `sum by (` + mine + `) (increase(semel_claims_total{outcome="lost"}[10m])) > 0`, severity: ticket,
			summary: "claims ended before their work did",
			means:   "A handler takes longer than a lease that nobody could extend, a process was frozen, or persons act on rows that are worked on.",
			look:    "the log line `claim lost`, the process's pauses, and `semel_batch_handle_seconds`.",
			mend:    "raise `inbox.lease`, or shorten the handler."},
		{name: "SemelBacklogBehindLowLag", expr: backlogBehindLowLag(), hold: 15 * time.Minute, severity: page,
			summary: "the inbox grows while the broker's lag is low",
			means:   "With `ack: after_receipt` the broker is settled before the effect: its lag says nothing of what waits.",
			look:    "`semel inbox ls`, and `semel_batch_handle_seconds`.",
			mend:    "add workers, or take less until they keep up: `semel limit MESSAGES --consumer NAME --because WHY`."},
		{name: "SemelGap", expr: "max by (store, consumer) (semel_store_gap_oldest_seconds) > 900", hold: 5 * time.Minute, severity: page,
			summary: "a version has been missing for a quarter of an hour",
			means:   "Messages wait for an earlier version of their stream, which may never come.",
			look:    "`semel gaps ls`.",
			mend:    "have the producer send it, `semel gaps backfill --consumer NAME --file FILE --because WHY`, or `semel gaps skip --stream NAME --because WHY`."},
		{name: "SemelLag", expr: "sum by (" + mine + ") (semel_broker_lag_messages) > 10000", hold: 15 * time.Minute, severity: ticket,
			summary: "the consumer is 10,000 messages behind its broker",
			means:   "More comes than is worked on, or it stands still.",
			look:    "`semel_ready`, `semel_unsettled_oldest_seconds`, and `semel_lanes{state=\"held up\"}`: a transaction of a producer that hangs.",
			mend:    "add processes or workers, or mend what fails."},
		{name: "SemelUnsettled", expr: "max by (" + mine + ") (semel_unsettled_oldest_seconds) > 600", hold: 5 * time.Minute, severity: ticket,
			summary: "a message has been in memory for ten minutes",
			means:   "It waits for a lock, for a copy elsewhere, or its handler does not end; its lane waits behind it.",
			look:    "the log, and `semel_workers{state=\"stuck\"}`.",
			mend:    "end who holds the lock, or mend the handler."},
	}
}

// backlogBehindLowLag is true of more than 1,000 rows that become more; of those that are more
// than are counted nobody can say so, and how many are counted the database decides.
func backlogBehindLowLag() string {
	const received = `semel_store_rows{state="RECEIVED"}`
	rows := "max by (store, " + mine + ") (" + received + ")"
	more := rows + " > 1000 and max by (store, " + mine + ") (deriv(" + received + "[15m])) > 0"
	beyond := rows + ` > 100 and on (store) max by (store) (semel_store_rows_at_least{state="RECEIVED"}) == 1`
	return "(" + more + " or " + beyond + ") and on (" + mine + ") sum by (" + mine + ") (semel_broker_lag_messages) < 100"
}

func operationAlerts() []alert {
	return []alert{
		{name: "SemelNotReady", expr: "min by (" + mine + ", instance) (semel_ready) == 0", hold: 2 * time.Minute, severity: page,
			summary: "a consumer is not ready",
			means:   "Its store or its source does not work, a handler goes on after its time-out, its circuit breaker is open, it has halted, or it could not start or its run has ended by an error while the others of its process go on (`on_failure: continue`).",
			look:    "`semel health`, which says why.",
			mend:    "the store or the broker; a restart mends neither. After a halt: mend the message's cause and start it again. If it could not start, or its run has ended: mend what the error names, then restart the process."},
		{name: "SemelBreakerOpen", expr: `sum by (` + mine + `, instance) (increase(semel_not_ready_total{part="breaker"}[5m])) > 0`, severity: page,
			summary: "a consumer stands still, because messages fail for good one after the other",
			means:   "After a start every message failed, as after a bad deployment, or as many in a row as `retry.breaker_threshold` says. Nothing more is fetched, and one message is tried at a time, once a minute at least. Nothing is lost.",
			look:    "the log line `the circuit breaker is open`, which has the error, and what was deployed last.",
			mend:    "the handler, the policy or the database, and start again: the first success closes the breaker. Then `semel parked summary` and `semel parked retry --all --consumer NAME --because WHY` for what was set aside before it opened. If the messages are bad and the handler is not, wait: each is set aside after some tries; or set `retry: {disable_breaker: true}` until they are through."},
		{name: "SemelClockSetBack", expr: `sum by (` + mine + `) (increase(semel_not_ready_total{part="clock"}[10m])) > 0`, severity: ticket,
			summary: "the store's clock was ahead, and was set back",
			means:   "Rows were dated further ahead than they can be. A running consumer cuts their waits and leases within half a minute, so that they are due as if the clock had been right. Nothing is lost. Messages of consumers that no process runs stay dated ahead until one does.",
			look:    "the log line `the store's clock was set back`, which says how many rows and by how much, the time service of the database's host, and whether it failed over to a host with another clock.",
			mend:    "the clock. Of what is not to wait for a consumer's look: `semel inbox retry --all --consumer NAME --because WHY`. While the clock was ahead, retentions and leases ended early by it: see whether processes were frozen for longer than `inbox.lease` then."},
		{name: "SemelNotAlive", expr: "min by (" + mine + ", instance) (semel_alive) == 0", hold: time.Minute, severity: page,
			summary: "a consumer neither works nor pauses by decision",
			means:   "The handlers of all workers go on after their time-outs, the engine has stood still for a minute, its run has ended by an error (`on_failure: exit`) and the other consumers are drained before the process ends, or its store has not worked for as long as `listen.restart_on_outage` says. A consumer that failed with `on_failure: continue` is alive and not ready: see SemelNotReady.",
			look:    "`semel health --live`, which says why.",
			mend:    "restart the process, which is safe; then mend the handler, what the error names, or the store."},
		{name: "SemelStoreNotSampled", expr: "max by (store, instance) (semel_store_sample_stale) == 1", hold: 5 * time.Minute, severity: ticket,
			summary: "the figures of a store are old",
			means:   "It does not answer the sampler within 50 ms a statement, or not at all. Of a state that hundreds of thousands of rows have left since the last vacuum, it does not even where it is well.",
			look:    "`semel_store_sample_age_seconds`, `semel_store_connections`, `semel_store_estimated_dead_rows`, and the database.",
			mend:    "the database; among many dead rows `vacuum semel_inbox`, and whoever holds a transaction open so long that vacuum removes nothing."},
		{name: "SemelReaperBehind", expr: "max by (store, consumer) (semel_store_reaper_lag_seconds) > 172800 or max by (store, consumer) (semel_store_reaper_progress_seconds) > 86400", hold: time.Hour, severity: ticket,
			summary: "markers are kept for much longer than their retention",
			means:   "No process of the consumer runs, the reaper fails or does not keep up, or a lane holds it back.",
			look:    "`semel reap status`, which says what holds it.",
			mend:    "of a lane that is gone `semel reap forget --consumer NAME --lane NAME --because WHY`; else `semel reap --once`."},
		{name: "SemelReplayRuns", expr: "max by (store, consumer) (semel_store_replays) > 0", severity: ticket,
			summary: "a replay runs",
			means:   "Somebody gives a consumer again what it had. If its effects are real, look whether that is meant.",
			look:    "`semel replay status`, who and why.",
			mend:    "`semel replay stop NUMBER --because WHY`."},
		{name: "SemelUnknownCommits", expr: `sum by (` + mine + `) (increase(semel_batches_total{end="unknown"}[10m])) > 5`, severity: ticket,
			summary: "answers to commits are lost again and again",
			means:   "Nothing is doubled: such batches are marked again. But the network or the server cuts connections in their commits.",
			look:    "the log, and what lies between the process and the database.",
			mend:    "the network, or the database."},
	}
}

func writeGroup(b *strings.Builder, name string, all []alert) {
	fmt.Fprintf(b, "  - name: %s\n    rules:\n", name)
	for _, a := range all {
		fmt.Fprintf(b, "      - alert: %s\n        expr: '%s'\n", a.name, strings.ReplaceAll(a.expr, "'", "''"))
		if a.hold > 0 {
			fmt.Fprintf(b, "        for: %dm\n", int(a.hold.Minutes()))
		}
		fmt.Fprintf(b, "        labels: {severity: %s}\n        annotations:\n          summary: '{{ $labels.consumer }}{{ if and $labels.consumer $labels.store }} in {{ end }}{{ $labels.store }}: %s'\n          runbook: docs/alerts.md#%s\n",
			a.severity, strings.ReplaceAll(a.summary, "'", "''"), strings.ToLower(a.name))
	}
}
