package otel

// kind determines how an instrument gets its values.
type kind uint8

// Kinds of instruments.
const (
	// asked is the kind of counters that are read from the consumer when metrics are collected.
	asked kind = iota
	// askedGauge is the kind of gauges that are read from the consumer when metrics are collected.
	askedGauge
	// told is the kind of counters that events increase.
	told
)

// instrument is one metric. A test compares name and help with docs/reference/metrics.md.
type instrument struct {
	name string
	kind kind
	unit string
	help string
}

// Labels of the metrics that events update.
const (
	labelEnd    = "end"
	labelHow    = "how"
	labelReason = "reason"
	labelPart   = "part"
)

const (
	batchesTotal  = "semel_batches_total"
	batchMessages = "semel_batch_messages"
)

// instruments contains all metrics except the histograms.
var instruments = []instrument{
	{"semel_deliveries_total", asked, "1", "Messages that the source delivered."},
	{"semel_endings_total", asked, "1", "Deliveries that ended, by ending. Deliveries in memory and nacked deliveries are the difference to semel_deliveries_total."},
	{"semel_effects_total", asked, "1", "Committed effects, of deliveries and of inbox rows."},
	{"semel_duplicates_total", asked, "1", "Copies of messages that were processed before. Their handlers did not run. Duplicates are not errors."},
	{"semel_conflicts_total", asked, "1", "Messages with a known identity but other content: a producer uses an id twice, or the fingerprint covers a field that may change."},
	{"semel_unapplied_total", told, "1", "Messages that ended without an effect, by ending and reason."},
	{"semel_retries_total", asked, "1", "Attempts after a failure of the same message."},
	{"semel_reruns_total", asked, "1", "Further runs of handlers that succeeded but were rolled back with their batch."},
	{"semel_retry_budget_waits_total", told, "1", "Times at which failures exceeded the retry budget, counted at most once a minute."},
	{"semel_backstops_total", told, "1", "Doubled effects that a unique constraint of your table prevented, because the message had no marker."},
	{"semel_same_content_total", asked, "1", "Messages with a new id but the content of a recent message, whose effects happened: a producer may create a new id when it repeats a message. A residual risk."},
	{"semel_without_key_total", asked, "1", "Messages applied without a key while the key store was down. A residual risk."},
	{"semel_intents_sent_again_total", asked, "1", "Intents sent again because of a duplicate."},
	{"semel_intents_not_sent_again_total", asked, "1", "Intents not sent again because the other side may have forgotten their keys. A residual risk."},
	{"semel_claims_total", asked, "1", "Claims of inbox rows and intents, by outcome. lost: the lease ended, or an operator changed the row."},
	{"semel_reclaimed_total", asked, "1", "Claims of rows whose previous claim ended by its lease: its process died or was frozen, possibly because of the message. Also counted if the answer to a claim was lost."},
	{"semel_batches_total", told, "1", "Batches that ended. unknown: the answer of the commit was lost, and the markers are read again."},
	{"semel_contended_total", told, "1", "Batches that run again after a deadlock, a lock timeout or a serialization failure."},
	{"semel_serialised", askedGauge, "1", "1 while batches run one at a time because of contention."},
	{"semel_serialised_seconds_total", asked, "s", "Time during which batches ran one at a time."},
	{"semel_unsettled_messages", askedGauge, "1", "Deliveries and claims in memory. state: queued, flying (in a transaction), held (until a time such as the next attempt), riding (waits for an earlier copy), settling (being acked)."},
	{"semel_unsettled_bytes", askedGauge, "By", "Memory of the deliveries and claims in bytes."},
	{"semel_unsettled_oldest_seconds", askedGauge, "s", "Age of the oldest delivery or claim in memory; 0 if there is none."},
	{"semel_lanes", askedGauge, "1", "Partitions and files assigned to this process. state: given (all), paused (waiting for one of their messages)."},
	{"semel_workers", askedGauge, "1", "Workers. state: all, stuck (the handler is still running after its timeout)."},
	{"semel_ready", askedGauge, "1", "1 while store, source and consumer work."},
	{"semel_alive", askedGauge, "1", "0 while the consumer neither works nor is paused."},
	{"semel_not_ready_total", told, "1", "Failed attempts of a part. keys: calls whose outcome the key store did not record at once, counted again every minute."},
	{"semel_paused", askedGauge, "1", "1 while an operator has paused the consumer."},
}

// apiInstruments contains the metrics of HTTP APIs; see docs/guides/http.md.
var apiInstruments = []instrument{
	{"semel_http_requests_total", asked, "1", "Requests, by outcome or by the code of the problem document."},
	{"semel_http_keys", askedGauge, "1", "Keys. state: in_flight (this process is working on them), open (their handlers run, with New in a transaction), most (the limit of open)."},
}

// batchParts contains the histograms for the parts of a batch: markers, handlers and commit.
var batchParts = [3]struct{ name, help string }{
	{"semel_batch_mark_seconds", "Time to begin the transaction and to write the markers, including waits for locks on the same markers. Values far above the median are such waits."},
	{"semel_batch_handle_seconds", "Time of all handlers of a batch."},
	{"semel_batch_commit_seconds", "Time of the commit, including statements that handlers queued."},
}

// Upper bounds of the buckets of histograms.
var (
	messageBounds = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 10000}
	secondBounds  = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
)
