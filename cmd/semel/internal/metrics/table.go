// Package metrics serves metrics of consumers to Prometheus, and the health of consumers to orchestrators. A
// test generates docs/reference/metrics.md from the table in this file. Labels have few values; all values
// come from the policy or the table. Ids, keys and texts of messages are never labels.
package metrics

import (
	"slices"
)

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// metric is one entry of the table.
type metric struct {
	name string
	kind kind
	help string
	// The field labels has the labels of the metric, in addition to the labels of the part.
	labels []string
	// buckets are the upper bounds of a histogram.
	buckets []float64
}

// part is a chapter of the table, and of the reference.
type part struct {
	title, description string
	// The field labels has the labels of all metrics in the part.
	labels  []string
	metrics []metric
}

// The names of the labels.
const (
	byConsumer = "consumer"
	bySource   = "source"
	byStore    = "store"
	byEnding   = "ending"
	byHow      = "how"
	byReason   = "reason"
	byEnd      = "end"
	byFate     = "fate"
	byOutcome  = "outcome"
	byState    = "state"
	byTable    = "table"
	byRisk     = "risk"
	byPart     = "part"
)

// labelMeanings describes the values of each label.
var labelMeanings = [][2]string{
	{byConsumer, "the name of the consumer in the policy, without its generation"},
	{bySource, "the kind of the source: `file`, `kafka`, `webhook`, or `none` for a sender of intents"},
	{byStore, "the name of the store in the policy"},
	{byEnding, "the ending of a delivery, as in the [summary](../operate/summary.md) of a run"},
	{byHow, "`parked`, `dead_lettered`, `discarded` or `conflict`"},
	{byReason, "one of Semel's [reasons](../operate/parked-reasons.md), `none`, or `other` for reasons of handlers"},
	{byEnd, "how a batch ended: `committed`, `rolled back`, `unknown`, `not begun`"},
	{byFate, "the outcome of a [request](../guides/webhooks.md#answers): `received`, `duplicate`, `parked`, `ended`, or the cause of a refusal"},
	{byOutcome, "the outcome of a claim, as in the summary of the inbox"},
	{byState, "see the meaning of the metric"},
	{byRisk, "a risk that the policy accepts: `may double`, `may be lost` (calls without a key), `without key` (while Redis is down), `late copies` (strategy natural), `uncompared` (a previous identity), `records passed by` (lost by the broker), `unsigned` (headers of webhooks)"},
	{byTable, "`markers` or `inbox`"},
	{byPart, "what a consumer needs in order to work: `store`, `source`, `inbox`, `broker` (takes acks), `fetch` (memory for more messages), `keys` (the key store records outcomes), `breaker` (the circuit breaker is closed; see `retry.breaker_threshold`), `clock` (no rows are dated in the future of the store's clock)"},
}

// seconds are the histogram buckets for durations of batches, from a fast commit to a statement timeout.
var seconds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// table returns all metrics of Semel.
func table() []part {
	return []part{deliveries(), webhooks(), batches(), inHand(), health(), traces(), stores()}
}

func deliveries() part {
	return part{"Deliveries and effects", "Counted since this process started.", []string{byConsumer}, []metric{
		{name: "semel_deliveries_total", kind: counter, labels: []string{bySource}, help: "Messages that the source delivered."},
		{name: "semel_endings_total", kind: counter, labels: []string{bySource, byEnding}, help: "Deliveries that ended, by ending. Deliveries in memory and nacked deliveries are the difference to semel_deliveries_total."},
		{name: "semel_effects_total", kind: counter, help: "Committed effects, of deliveries and of inbox rows."},
		{name: "semel_duplicates_total", kind: counter, help: "Copies of messages that ended before, with any outcome. Their handlers did not run. Duplicates are not errors."},
		{name: "semel_conflicts_total", kind: counter, help: "Messages with a known identity but other content: a producer uses an id twice, or the fingerprint covers a field that may change."},
		{name: "semel_unapplied_total", kind: counter, labels: []string{byHow, byReason}, help: "Messages that ended without an effect, by ending and reason."},
		{name: "semel_retries_total", kind: counter, help: "Attempts after a failure of the same message."},
		{name: "semel_reruns_total", kind: counter, help: "Further runs of handlers that succeeded but were rolled back with their batch, or on purpose (`canary`)."},
		{name: "semel_retry_budget_waits_total", kind: counter, help: "Times at which failures exceeded the retry budget, counted at most once a minute."},
		{name: "semel_backstops_total", kind: counter, help: "Doubled effects that a unique constraint of your table prevented, because the message had no marker."},
		{name: "semel_same_content_total", kind: counter, help: "Messages with a new id but the content of a recent message, whose effects happened: a producer may create a new id when it repeats a message. A residual risk."},
		{name: "semel_without_key_total", kind: counter, help: "Messages applied without a key while the key store was down. A residual risk."},
		{name: "semel_intents_sent_again_total", kind: counter, help: "Intents sent again because of a duplicate."},
		{name: "semel_intents_not_sent_again_total", kind: counter, help: "Intents not sent again because the other side may have forgotten their keys. A residual risk."},
		{name: "semel_claims_total", kind: counter, labels: []string{byOutcome}, help: "Claims of inbox rows and intents, by outcome. lost: the lease ended, or an operator changed the row."},
		{name: "semel_reclaimed_total", kind: counter, help: "Claims of rows whose previous claim ended by its lease: its process died or was frozen, possibly because of the message. Also counted if the answer to a claim was lost."},
	}}
}

func webhooks() part {
	return part{"Webhooks", "For consumers whose source is a webhook. Counted since this process started.", []string{byConsumer}, []metric{
		{name: "semel_webhook_requests_total", kind: counter, labels: []string{byFate}, help: "Requests, by outcome."},
		{name: "semel_webhook_equal_bodies_total", kind: counter, help: "Requests with the body of an earlier request and other unsigned headers: a provider sent an event twice, or an attacker repeated a request. A residual risk."},
	}}
}

func batches() part {
	return part{"Batches", "A batch is one transaction. These metrics are updated once a batch.", []string{byConsumer}, []metric{
		{name: "semel_batches_total", kind: counter, labels: []string{byEnd}, help: "Batches that ended. unknown: the answer of the commit was lost, and the markers are read again."},
		{name: "semel_batch_messages", kind: histogram, buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 10000}, help: "Messages of a batch."},
		{name: "semel_batch_mark_seconds", kind: histogram, buckets: seconds, help: "Time to begin the transaction and to write the markers, including waits for locks on the same markers. Values far above the median are such waits."},
		{name: "semel_batch_handle_seconds", kind: histogram, buckets: seconds, help: "Time of all handlers of a batch."},
		{name: "semel_batch_commit_seconds", kind: histogram, buckets: seconds, help: "Time of the commit, including statements that handlers queued."},
		{name: "semel_contended_total", kind: counter, help: "Batches that run again after a deadlock, a lock timeout or a serialization failure."},
		{name: "semel_serialised", kind: gauge, help: "1 while batches run one at a time because of contention."},
		{name: "semel_serialised_seconds_total", kind: counter, help: "Time during which batches ran one at a time."},
	}}
}

func inHand() part {
	return part{"Messages in memory", "Messages that this process has received and not acked.", []string{byConsumer}, []metric{
		{name: "semel_unsettled_messages", kind: gauge, labels: []string{byState}, help: "Deliveries and claims in memory. state: queued, flying (in a transaction), held (until a time such as the next attempt), riding (waits for an earlier copy), settling (being acked)."},
		{name: "semel_unsettled_bytes", kind: gauge, help: "Memory of the deliveries and claims in bytes."},
		{name: "semel_unsettled_oldest_seconds", kind: gauge, help: "Age of the oldest delivery or claim in memory; 0 if there is none."},
		{name: "semel_lanes", kind: gauge, labels: []string{byState}, help: "Partitions and files assigned to this process. state: given (all), paused (waiting for one of their messages), held up (behind an open transaction), standing (stopped by a fault)."},
		{name: "semel_broker_lag_messages", kind: gauge, help: "Records after the committed offset in the partitions of this process, read from the broker once a second. Missing until the broker has answered, for a consumer that is paused since its start, and after the run has ended."},
		{name: "semel_workers", kind: gauge, labels: []string{byState}, help: "Workers. state: all, stuck (the handler is still running after its timeout)."},
	}}
}

func health() part {
	return part{"Health", "The states behind `/livez` and `/readyz`.", []string{byConsumer}, []metric{
		{name: "semel_ready", kind: gauge, help: "1 while store, source and consumer work."},
		{name: "semel_alive", kind: gauge, help: "0 while the consumer neither works nor is paused."},
		{name: "semel_not_ready_total", kind: counter, labels: []string{byPart}, help: "Failed attempts of a part. keys: calls whose outcome the key store did not record at once, counted again every minute. clock: times at which rows were dated too far in the future because the store's clock had been ahead; Semel corrects them at once, and the consumer stays ready."},
		{name: "semel_residual_risk", kind: gauge, labels: []string{byRisk}, help: "1 for each risk that the policy accepts; see question 21 of semel check."},
		{name: "semel_paused", kind: gauge, help: "1 while an operator has paused the consumer."},
	}}
}

func traces() part {
	return part{"Traces", "Only if `traces` is set. See [traces](../operate/traces.md).", nil, []metric{
		{name: "semel_spans_sent_total", kind: counter, help: "Spans that the collector accepted."},
		{name: "semel_spans_dropped_total", kind: counter, help: "Spans that the collector did not accept, or that did not fit into memory. Messages never wait for spans."},
	}}
}

func stores() part {
	return part{"Stores", "Sampled every 15 s; the last values remain while the store does not answer (see semel_store_sample_stale). All processes of a store report the same values: aggregate with max, not with sum.", []string{byStore}, []metric{
		{name: "semel_store_rows", kind: gauge, labels: []string{byConsumer, byState}, help: "Inbox rows that wait, are parked or are dead-lettered, by state. Counted up to 10,000 a state, or up to what the database counts in 50 ms."},
		{name: "semel_store_rows_at_least", kind: gauge, labels: []string{byState}, help: "1 if a state has more rows than were counted, so semel_store_rows and semel_store_oldest_seconds are lower bounds."},
		{name: "semel_store_oldest_seconds", kind: gauge, labels: []string{byConsumer, byState}, help: "Age of the oldest of these rows, by the store's clock. A row that was received while that clock was ahead has age 0 until a running consumer corrects its time, within half a minute; see `semel_not_ready_total{part=\"clock\"}`."},
		{name: "semel_store_gap_oldest_seconds", kind: gauge, labels: []string{byConsumer}, help: "Age of the oldest row that waits for an earlier version."},
		{name: "semel_store_suppressed_effects", kind: gauge, labels: []string{byConsumer}, help: "Intents that a replay without effects wrote and that are not sent. They are included in the PARKED rows of semel_store_rows; the label is the consumer that would send them."},
		{name: "semel_store_reaper_lag_seconds", kind: gauge, labels: []string{byConsumer}, help: "Time by which the oldest marker exceeds its retention, from the last complete pass of the reaper; missing before the first."},
		{name: "semel_store_reaper_progress_seconds", kind: gauge, labels: []string{byConsumer}, help: "Time since a process of the consumer reported its progress; the reaper removes nothing younger. Missing if the retention is forever."},
		{name: "semel_store_replays", kind: gauge, labels: []string{byConsumer}, help: "Replays in progress."},
		{name: "semel_store_estimated_rows", kind: gauge, labels: []string{byTable}, help: "Rows of a table by the server's estimate, which may be wrong by 10 % or more; missing in SQLite."},
		{name: "semel_store_estimated_markers", kind: gauge, labels: []string{byState}, help: "Markers by outcome, by the server's estimate, which misses rare outcomes; missing in SQLite and before the table is analyzed. state: applied, waiting, parked, dead_lettered, discarded. semel_store_rows counts waiting, parked and dead-lettered messages."},
		{name: "semel_store_estimated_dead_rows", kind: gauge, labels: []string{byTable}, help: "Dead rows of a table by the server's estimate; missing in SQLite."},
		{name: "semel_store_connections", kind: gauge, labels: []string{byState}, help: "Connections of this process. state: used, idle, most."},
		{name: "semel_store_sample_age_seconds", kind: gauge, help: "Age of the values; missing before the first sample."},
		{name: "semel_store_sample_stale", kind: gauge, help: "1 while the store does not answer the sampler."},
	}}
}

// entry returns the named metric and all of its labels, including the labels of the part.
func entry(name string) (metric, []string) {
	for _, p := range table() {
		for _, m := range p.metrics {
			if m.name == name {
				return m, append(slices.Clone(p.labels), m.labels...)
			}
		}
	}
	panic("semel: the table of metrics has no " + name)
}
