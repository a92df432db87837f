package metrics

import (
	"fmt"
	"strings"
	"time"
)

// alert is one rule with its runbook.
type alert struct {
	name, expr string
	hold       time.Duration
	// severity is page if a person must react immediately, otherwise ticket.
	severity string
	summary  string
	// The fields means, look and fix are the texts of the runbook.
	means, look, fix string
}

// The severities of alerts.
const (
	page   = "page"
	ticket = "ticket"
)

// sumLabel is the label by which expressions sum the values of all processes of a consumer.
const sumLabel = "consumer"

// alerts returns the rules of deploy/alerts.yaml.
func alerts() []alert {
	all := append(effectsAlerts(), backlogAlerts()...)
	return append(all, operationAlerts()...)
}

func effectsAlerts() []alert {
	return []alert{
		{name: "SemelDoubledEffectCaught", expr: "sum by (" + sumLabel + ") (increase(semel_backstops_total[10m])) > 0", severity: page,
			summary: "a constraint of your table prevented a doubled effect",
			means:   "A message had no marker although its effect existed. Markers were deleted or lost, copies arrive later than the retention, or another program writes the same effect.",
			look:    "the log line `backstop`, which names the message; `semel retention status`, which shows the retention.",
			fix:     "raise `retention`, or restore the markers (`semel migrate seed NAME --from TABLE --id COLUMN`)."},
		{name: "SemelConflict", expr: "sum by (" + sumLabel + ") (increase(semel_conflicts_total[10m])) > 0", severity: ticket,
			summary: "a message has a known identity but other content",
			means:   "A producer uses an id for two messages, or changes a message without changing its id, or the fingerprint covers a field that may change.",
			look:    "`semel messages ls --reason conflict`, and `semel messages show NUMBER`.",
			fix:     "make the producer create one id for each message, or narrow `fingerprint`; then `semel messages discard NUMBER --because WHY`."},
		{name: "SemelDuplicateSpike", expr: duplicateSpike("", 1), hold: 10 * time.Minute, severity: ticket,
			summary: "more than half of the deliveries are duplicates",
			means:   "No effect is doubled, but work is wasted. A producer repeats messages, acks are lost, or offsets were reset.",
			look:    "`semel replay status` for a running replay, `semel consumers positions plan` for offsets that were reset, and the retries of the producer.",
			fix:     "correct the producer, or the cause of lost acks. Semel needs no change."},
		{name: "SemelUnknownType", expr: `sum by (` + sumLabel + `) (increase(semel_unapplied_total{reason="unknown type"}[10m])) > 0`, severity: ticket,
			summary: "messages have a type without a handler",
			means:   "A producer was deployed before this consumer, or the topic is shared and `filter` is missing.",
			look:    "`semel messages summary`.",
			fix:     "deploy the handler and run `semel messages retry --all --reason 'unknown type' --because WHY`, or name the wanted types in `filter`."},
		{name: "SemelResidualRisk", expr: "sum by (" + sumLabel + ") (increase(semel_without_key_total[10m]) + increase(semel_intents_not_sent_again_total[10m])) > 0", severity: ticket,
			summary: "an accepted risk occurred: an effect may be doubled or lost",
			means:   "Messages were applied while the key store was down, or intents were not sent again because the other side may have forgotten their keys.",
			look:    "the log, and `semel reconcile NAME --file FILE` with the records of the other side.",
			fix:     "correct the affected messages by hand."},
		{name: "SemelWebhooksRefused", expr: `sum by (` + sumLabel + `) (increase(semel_webhook_requests_total{fate=~"not_signed|malformed|forged|old"}[10m])) > 5`, severity: ticket,
			summary: "webhooks are refused because of their signatures",
			means:   "Refused webhooks are not stored; none is lost while the provider repeats them. The provider signs with an unknown secret, a proxy changes bodies, clocks differ, or an attacker forges requests.",
			look:    "the label `fate` of `semel_webhook_requests_total`: `forged` means a wrong secret or a changed body, `old` a clock or a repeated request, `not_signed` and `malformed` another scheme. Attackers can cause each of them. Check whether other webhooks are still `received`, and the delivery log of the provider.",
			fix:     "configure both secrets, `secret: [\"${NEW}\", \"${OLD}\"]`, stop the proxy from changing bodies, or correct the clock; then let the provider repeat failed deliveries. Block attackers by address in the proxy."},
	}
}

func backlogAlerts() []alert {
	return []alert{
		{name: "SemelParked", expr: parkedExpr("", 1), hold: 5 * time.Minute, severity: ticket,
			summary: "messages are parked",
			means:   "They had no effect and are not retried automatically.",
			look:    "`semel messages summary`, by reason.",
			fix:     "correct the cause, then `semel messages retry NUMBER --because WHY`, or `semel messages discard NUMBER --because WHY`."},
		{name: "SemelPendingAge", expr: pendingAge("", 15*time.Minute), hold: 5 * time.Minute, severity: page,
			summary: "a message has waited in the inbox for 15 minutes",
			means:   "Received messages are not processed: there are too few workers, the handler fails, or no process runs.",
			look:    "`semel messages ls --state waiting,running,blocked`, `semel_retries_total`, and whether the consumer is paused (`semel consumers ls`).",
			fix:     "correct the handler, add workers, or run `semel consumers resume NAME --because WHY`."},
		{name: "SemelStaleClaims", expr: `sum by (` + sumLabel + `) (increase(semel_claims_total{outcome="lost"}[10m])) > 0`, severity: ticket,
			summary: "claims ended before their handlers did",
			means:   "The lease of a running handler could not be extended, a process was frozen, or operators changed rows in progress.",
			look:    "the log line `claim lost`, pauses of the process, and `semel_batch_handle_seconds`.",
			fix:     "raise `inbox.lease`, or shorten the handler."},
		{name: "SemelBacklogBehindLowLag", expr: backlogBehindLowLag(), hold: 15 * time.Minute, severity: page,
			summary: "the inbox grows while the broker's lag is low",
			means:   "With `ack: after_receipt` messages are acked before their effects, so the broker's lag does not include the inbox.",
			look:    "`semel messages ls --state waiting,running,blocked`, and `semel_batch_handle_seconds`.",
			fix:     "add workers, or fetch less until they keep up: `semel consumers limit NAME MESSAGES --because WHY`."},
		{name: "SemelGap", expr: "max by (store, consumer) (semel_store_gap_oldest_seconds) > 900", hold: 5 * time.Minute, severity: page,
			summary: "a version has been missing for 15 minutes",
			means:   "Messages wait for an earlier version of their stream, which may never arrive.",
			look:    "`semel gaps ls`.",
			fix:     "make the producer send the version, or run `semel gaps backfill NAME --file FILE --because WHY`, or `semel gaps skip --stream NAME --because WHY`."},
		{name: "SemelLag", expr: "sum by (" + sumLabel + ") (semel_broker_lag_messages) > 10000", hold: 15 * time.Minute, severity: ticket,
			summary: "the consumer is 10,000 messages behind its broker",
			means:   "Messages arrive faster than they are processed, or the consumer is stopped.",
			look:    "`semel_ready`, `semel_unsettled_oldest_seconds`, and `semel_lanes{state=\"held up\"}`, which shows an open transaction of a producer.",
			fix:     "add processes or workers, or correct the failing part."},
		{name: "SemelUnsettled", expr: "max by (" + sumLabel + ") (semel_unsettled_oldest_seconds) > 600", hold: 5 * time.Minute, severity: ticket,
			summary: "a message has been in memory for ten minutes",
			means:   "The message waits for a lock or for a copy in another process, or its handler does not end. Its lane waits behind it.",
			look:    "the log, and `semel_workers{state=\"stuck\"}`.",
			fix:     "end the holder of the lock, or correct the handler."},
	}
}

// backlogBehindLowLag returns an expression that is true if more than 1,000 rows wait and their number grows.
// The store counts rows only up to a limit. If a count has reached the limit, growth is unknown, so more than
// 100 counted rows are enough.
func backlogBehindLowLag() string {
	const received = `semel_store_rows{state="RECEIVED"}`
	rows := "max by (store, " + sumLabel + ") (" + received + ")"
	more := rows + " > 1000 and max by (store, " + sumLabel + ") (deriv(" + received + "[15m])) > 0"
	beyond := rows + ` > 100 and on (store) max by (store) (semel_store_rows_at_least{state="RECEIVED"}) == 1`
	return "(" + more + " or " + beyond + ") and on (" + sumLabel + ") sum by (" + sumLabel + ") (semel_broker_lag_messages) < 100"
}

func operationAlerts() []alert {
	return []alert{
		{name: "SemelNotReady", expr: "min by (" + sumLabel + ", instance) (semel_ready) == 0", hold: 2 * time.Minute, severity: page,
			summary: "a consumer is not ready",
			means:   "The store or the source does not work, a handler is still running after its timeout, the circuit breaker is open, the consumer has halted, or it could not start or ended with an error while the other consumers of the process continue (`on_failure: continue`).",
			look:    "`semel health`, which shows the cause.",
			fix:     "repair the store or the broker; a restart does not help. After a halt, correct the cause of the failed message and start the consumer again. If the consumer could not start or ended, correct the error and restart the process."},
		{name: "SemelBreakerOpen", expr: `sum by (` + sumLabel + `, instance) (increase(semel_not_ready_total{part="breaker"}[5m])) > 0`, severity: page,
			summary: "a consumer has stopped because messages fail permanently in a row",
			means:   "Every message since the start failed, for example after a bad deployment, or `retry.breaker_threshold` messages failed in a row. The consumer fetches nothing and tries one message at a time, at least once a minute. No message is lost.",
			look:    "the log line `the circuit breaker is open`, which contains the error, and the last deployment.",
			fix:     "correct the handler, the policy or the database, and restart; the first success closes the breaker. Then run `semel messages summary`, and `semel messages retry --all --consumer NAME --because WHY` for the messages that were parked before the breaker opened. If the messages are bad and the handler is right, wait until each is parked after some attempts, or set `retry: {disable_breaker: true}` until they are processed."},
		{name: "SemelClockSetBack", expr: `sum by (` + sumLabel + `) (increase(semel_not_ready_total{part="clock"}[10m])) > 0`, severity: ticket,
			summary: "the store's clock was ahead, and was set back",
			means:   "Rows have times in the future. A running consumer corrects their waits and leases within half a minute. No message is lost. Rows of consumers without a running process stay in the future until one runs.",
			look:    "the log line `the store's clock was set back`, which contains the number of rows and the difference; the time service of the database host; and a failover to a host with another clock.",
			fix:     "correct the clock. To retry rows at once, run `semel messages retry --state waiting --all --consumer NAME --because WHY`. While the clock was ahead, retentions and leases ended early: check whether a process was frozen for longer than `inbox.lease` in that time."},
		{name: "SemelNotAlive", expr: "min by (" + sumLabel + ", instance) (semel_alive) == 0", hold: time.Minute, severity: page,
			summary: "a consumer neither works nor is paused",
			means:   "The handlers of all workers are still running after their timeouts, the engine has not moved for a minute, the consumer ended with an error (`on_failure: exit`) and the process drains the others before it ends, or the store has been down for longer than `listen.restart_on_outage`. With `on_failure: continue` a failed consumer is alive but not ready; see SemelNotReady.",
			look:    "`semel health --live`, which shows the cause.",
			fix:     "restart the process, which is safe; then correct the handler, the error, or the store."},
		{name: "SemelStoreNotSampled", expr: "max by (store, instance) (semel_store_sample_stale) == 1", hold: 5 * time.Minute, severity: ticket,
			summary: "the metrics of a store are out of date",
			means:   "The store does not answer the statements of the sampler within 50 ms each. Hundreds of thousands of dead rows since the last vacuum can also be the cause.",
			look:    "`semel_store_sample_age_seconds`, `semel_store_connections`, `semel_store_estimated_dead_rows`, and the database.",
			fix:     "repair the database. If there are many dead rows, run `vacuum semel_inbox`, and end long transactions that keep vacuum from removing them."},
		{name: "SemelReaperBehind", expr: "max by (store, consumer) (semel_store_reaper_lag_seconds) > 172800 or max by (store, consumer) (semel_store_reaper_progress_seconds) > 86400", hold: time.Hour, severity: ticket,
			summary: "markers are kept for much longer than their retention",
			means:   "No process of the consumer runs, the reaper fails or is too slow, or the progress of a lane holds it back.",
			look:    "`semel retention status`, which shows the cause.",
			fix:     "for a lane that no longer exists, run `semel retention forget NAME --lane LANE --because WHY`; otherwise `semel retention run`."},
		{name: "SemelReplayRuns", expr: "max by (store, consumer) (semel_store_replays) > 0", severity: ticket,
			summary: "a replay is running",
			means:   "A consumer processes messages of its source again. Check whether that is intended, especially if effects are enabled.",
			look:    "`semel replay status` shows who started the replay, and why.",
			fix:     "`semel replay stop NUMBER --because WHY`."},
		{name: "SemelUnknownCommits", expr: `sum by (` + sumLabel + `) (increase(semel_batches_total{end="unknown"}[10m])) > 5`, severity: ticket,
			summary: "answers of commits are lost repeatedly",
			means:   "No effect is doubled, because the markers of such batches are read again. The network or the server closes connections during commits.",
			look:    "the log, and the network between the process and the database.",
			fix:     "repair the network or the database."},
	}
}

func writeGroup(b *strings.Builder, name string, all []alert) {
	fmt.Fprintf(b, "  - name: %s\n    rules:\n", name)
	for _, a := range all {
		fmt.Fprintf(b, "      - alert: %s\n        expr: '%s'\n", a.name, strings.ReplaceAll(a.expr, "'", "''"))
		if a.hold > 0 {
			fmt.Fprintf(b, "        for: %dm\n", int(a.hold.Minutes()))
		}
		fmt.Fprintf(b, "        labels: {severity: %s}\n        annotations:\n          summary: '{{ $labels.consumer }}{{ if and $labels.consumer $labels.store }} in {{ end }}{{ $labels.store }}: %s'\n          runbook: docs/operate/alerts.md#%s\n",
			a.severity, strings.ReplaceAll(a.summary, "'", "''"), strings.ToLower(a.name))
	}
}
