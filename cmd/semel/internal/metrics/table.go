// Package metrics serves what consumers tell of themselves to Prometheus, and their health
// to who starts and stops processes. A name and its meaning is one entry of the table
// below, of which docs/metrics.md is made. Labels have few values, which a policy or this
// table names: no id, key or text of a message is one.
package metrics

import (
	"slices"
)

// kind is what a figure does.
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
	// labels, beside those of the part that it stands in.
	labels []string
	// buckets are those of a histogram.
	buckets []float64
}

// part is a chapter of the table.
type part struct {
	title, says string
	// labels are those that every metric of it has.
	labels  []string
	metrics []metric
}

// The labels.
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

// labelMeanings say what values each label has.
var labelMeanings = [][2]string{
	{byConsumer, "the consumer's name in the policy, whatever its generation"},
	{bySource, "the kind of its source: `file`, `kafka`, `webhook`, or `none` of a sender, which has its inbox alone"},
	{byStore, "the store's name in the policy"},
	{byEnding, "how a delivery ended, as the [counts](operations.md#the-summary) of a run name it"},
	{byHow, "`parked`, `dead_lettered`, `discarded` or `conflict`"},
	{byReason, "one of Semel's [reasons](operations.md#parked-messages), `none`, or `other` for all that handlers name"},
	{byEnd, "how a batch ended: `committed`, `rolled back`, `unknown`, `not begun`"},
	{byFate, "what became of a [request](webhooks.md#answers): `received`, `duplicate`, `parked`, `ended`, or why it was refused"},
	{byOutcome, "how a claim ended, as the counts of the inbox name it"},
	{byState, "what a figure is divided by, as its meaning says"},
	{byRisk, "what a policy may take upon itself: `may double`, `may be lost` (calls without a key), `without key` (while Redis is down), `late copies` (by nature), `uncompared` (a former identity), `records passed by` (that the broker has lost), `unsigned` (headers of webhooks that nobody signed)"},
	{byTable, "`markers` or `inbox`"},
	{byPart, "what a consumer needs to go on: `store`, `source`, `inbox`, `broker` (which is told of endings), `fetch` (room for more), `keys` (the store of leased keys records what calls have come to), `breaker` (messages do not all fail for good; see `retry.breaker_threshold`), `clock` (no rows are dated in the future of the store's clock)"},
}

// seconds are the buckets of what a batch takes: from a fast commit to a statement's end.
var seconds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// table is every metric of Semel's own.
func table() []part {
	return []part{deliveries(), webhooks(), batches(), inHand(), health(), traces(), stores()}
}

func deliveries() part {
	return part{"Deliveries and effects", "Counted by this process since it started.", []string{byConsumer}, []metric{
		{name: "semel_deliveries_total", kind: counter, labels: []string{bySource}, help: "What the source delivered."},
		{name: "semel_endings_total", kind: counter, labels: []string{bySource, byEnding}, help: "Deliveries that ended, by how. Their sum is below semel_deliveries_total by what is in hand, or was handed back."},
		{name: "semel_effects_total", kind: counter, help: "Effects that were committed, of deliveries and of rows of the inbox."},
		{name: "semel_duplicates_total", kind: counter, help: "Copies of what had ended before, for which no handler ran. A success."},
		{name: "semel_conflicts_total", kind: counter, help: "Known identities with other content: a producer uses an id twice, or the fingerprint covers too much."},
		{name: "semel_set_aside_total", kind: counter, labels: []string{byHow, byReason}, help: "Messages that ended without an effect, by how and why."},
		{name: "semel_retries_total", kind: counter, help: "Further attempts after a failure of the message itself."},
		{name: "semel_reruns_total", kind: counter, help: "Runs of handlers that had run well and were rolled back with their batch."},
		{name: "semel_retry_budget_waits_total", kind: counter, help: "How often more attempts failed than the retry budget has room for, once a minute at most."},
		{name: "semel_backstops_total", kind: counter, help: "Doubled effects that a constraint of yours caught: the marker did not know the message."},
		{name: "semel_same_content_total", kind: counter, help: "Messages that took effect with an id of their own and the content of one that did so not long ago: a producer may mint an id when it sends again. A residual risk."},
		{name: "semel_without_key_total", kind: counter, help: "Messages that were applied while the store of the leased keys did not work. A residual risk."},
		{name: "semel_intents_sent_again_total", kind: counter, help: "Intents that duplicates have made due again."},
		{name: "semel_intents_not_sent_again_total", kind: counter, help: "Intents that were to be sent again and are not, since the other side may have forgotten their keys. A residual risk."},
		{name: "semel_claims_total", kind: counter, labels: []string{byOutcome}, help: "Claims of rows of the inbox, and of intents, by how they ended. lost: the lease ended, or a person acted on the row."},
		{name: "semel_reclaimed_total", kind: counter, help: "Claims of rows whose former claim ended with its lease, and of which no handler has come to an end since: who had them may have died of them, or was frozen. Also where the answer to a claim was lost."},
	}}
}

func webhooks() part {
	return part{"Webhooks", "Of a consumer whose source is webhooks. Counted by this process since it started.", []string{byConsumer}, []metric{
		{name: "semel_webhook_requests_total", kind: counter, labels: []string{byFate}, help: "Requests, by what became of them."},
		{name: "semel_webhook_equal_bodies_total", kind: counter, help: "Requests with the body of an earlier one beside other headers that nobody signed: a provider that tells of one event twice, or somebody who sends again what they saw. A residual risk."},
	}}
}

func batches() part {
	return part{"Batches", "A batch is one transaction. Told once a batch, so that a message costs next to nothing.", []string{byConsumer}, []metric{
		{name: "semel_batches_total", kind: counter, labels: []string{byEnd}, help: "Batches that are over, by how they ended. unknown: the answer to the commit was lost, and its messages are marked again."},
		{name: "semel_batch_messages", kind: histogram, buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 10000}, help: "How many messages a batch has."},
		{name: "semel_batch_mark_seconds", kind: histogram, buckets: seconds, help: "What it took to open the transaction and to write the marks, with what they waited for another transaction's marks: one statement writes them, and no store says how much of it was waiting. What is far above the median is."},
		{name: "semel_batch_handle_seconds", kind: histogram, buckets: seconds, help: "What the handlers of a batch took."},
		{name: "semel_batch_commit_seconds", kind: histogram, buckets: seconds, help: "What the commit took, with the statements that handlers queued."},
		{name: "semel_contended_total", kind: counter, help: "Batches that met a deadlock, a lock time-out or a serialization failure, and run again."},
		{name: "semel_serialised", kind: gauge, help: "1 while batches run one at a time, because they contend."},
		{name: "semel_serialised_seconds_total", kind: counter, help: "For how long they did."},
	}}
}

func inHand() part {
	return part{"In hand", "What this process holds and has not settled.", []string{byConsumer}, []metric{
		{name: "semel_unsettled_messages", kind: gauge, labels: []string{byState}, help: "Deliveries and claims in memory. state: queued, flying (in a transaction), held (until a moment, as the next try), riding (on an earlier copy) or settling."},
		{name: "semel_unsettled_bytes", kind: gauge, help: "What they hold of memory."},
		{name: "semel_unsettled_oldest_seconds", kind: gauge, help: "How long ago the oldest of them came; 0 without any."},
		{name: "semel_lanes", kind: gauge, labels: []string{byState}, help: "Partitions and files that are this process's. state: given (all), paused (those that wait for one of their messages), held up (those behind an open transaction) and standing (those that do not go on by a fault)."},
		{name: "semel_broker_lag_messages", kind: gauge, help: "Records of this process's partitions that are not settled, asked of the broker once a second, also while nothing is taken; none where the broker has not said, of a consumer that has been paused since it started, and of one whose run has ended."},
		{name: "semel_workers", kind: gauge, labels: []string{byState}, help: "Workers. state: all, stuck (their handlers go on after their time-outs)."},
	}}
}

func health() part {
	return part{"Health", "As `/livez` and `/readyz` tell it.", []string{byConsumer}, []metric{
		{name: "semel_ready", kind: gauge, help: "1 while the store and the source work, and the consumer does."},
		{name: "semel_alive", kind: gauge, help: "0 while the consumer neither works nor pauses by decision."},
		{name: "semel_not_ready_total", kind: counter, labels: []string{byPart}, help: "Tries of a part that failed, since this process started. keys: calls that the store of the leased keys did not record at once, each again once a minute. clock: how often rows were found that are dated further ahead than they can be, since the store's clock was ahead and is right again; they are cut to their own waits at once, and the consumer stays ready."},
		{name: "semel_residual_risk", kind: gauge, labels: []string{byRisk}, help: "1 for each risk that the policy has taken upon itself, as question 21 of semel check names them."},
		{name: "semel_paused", kind: gauge, help: "1 while an operator has paused it."},
	}}
}

func traces() part {
	return part{"Traces", "Where `traces` is set. See [traces](traces.md).", nil, []metric{
		{name: "semel_spans_sent_total", kind: counter, help: "Spans that the collector took."},
		{name: "semel_spans_dropped_total", kind: counter, help: "Spans that it did not take, or for which there was no room in memory. No message waits for a span."},
	}}
}

func stores() part {
	return part{"Stores", "Read by one sampler every 15 s, and kept when the store does not answer: see semel_store_sample_stale. Processes of one store read the same figures: aggregate with max, not with sum.", []string{byStore}, []metric{
		{name: "semel_store_rows", kind: gauge, labels: []string{byConsumer, byState}, help: "Rows of the inbox, by their state, of those that wait or are set aside. Counted to 10,000 a state, or fewer where the database needs more than 50 ms for that."},
		{name: "semel_store_rows_at_least", kind: gauge, labels: []string{byState}, help: "1 where there are more of a state than were counted, 10,000 or what the database can count in 50 ms, so that the figures of semel_store_rows and semel_store_oldest_seconds are at least so much."},
		{name: "semel_store_oldest_seconds", kind: gauge, labels: []string{byConsumer, byState}, help: "How long ago the oldest of them was received, by the store's clock: the pending age, the age of what is parked, and of what is blocked. A row that was received while that clock was ahead has no age (0) until a running consumer dates it anew, within half a minute, and ages from then on; `semel_not_ready_total{part=\"clock\"}` tells of it."},
		{name: "semel_store_gap_oldest_seconds", kind: gauge, labels: []string{byConsumer}, help: "The same of rows that wait for an earlier version."},
		{name: "semel_store_suppressed_effects", kind: gauge, labels: []string{byConsumer}, help: "Intents that a replay without effects wrote and nobody sends, of those in semel_store_rows that are PARKED; by the consumer that would send them."},
		{name: "semel_store_reaper_lag_seconds", kind: gauge, labels: []string{byConsumer}, help: "How much longer than its retention the oldest marker may have been kept, by the last whole walk of the reaper; none before the first."},
		{name: "semel_store_reaper_progress_seconds", kind: gauge, labels: []string{byConsumer}, help: "How long ago a process of the consumer told how far it is; the reaper removes nothing younger. None of a consumer whose retention is forever."},
		{name: "semel_store_replays", kind: gauge, labels: []string{byConsumer}, help: "Replays that have not ended."},
		{name: "semel_store_estimated_rows", kind: gauge, labels: []string{byTable}, help: "How many rows a table has, by the server's estimate, which may be off by a tenth or more; none in SQLite."},
		{name: "semel_store_estimated_markers", kind: gauge, labels: []string{byState}, help: "How many markers have which outcome, by the server's estimate, which misses what is rare; none in SQLite, and before the server has analyzed the table. state: applied, waiting, parked, dead_lettered or discarded. Those that wait or are set aside are in semel_store_rows, counted."},
		{name: "semel_store_estimated_dead_rows", kind: gauge, labels: []string{byTable}, help: "How many dead rows a table has, by the server's estimate; none in SQLite."},
		{name: "semel_store_connections", kind: gauge, labels: []string{byState}, help: "Connections of this process. state: used, idle, most."},
		{name: "semel_store_sample_age_seconds", kind: gauge, help: "How old the figures are; none before the first."},
		{name: "semel_store_sample_stale", kind: gauge, help: "1 while the store has not answered the sampler."},
	}}
}

// entry finds an entry of the table with the labels of its part.
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
