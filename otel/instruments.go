package otel

// kind is how an instrument gets its figures.
type kind uint8

// The kinds.
const (
	// asked is a counter that consumers are asked for.
	asked kind = iota
	// askedGauge is a gauge that consumers are asked for.
	askedGauge
	// told is a counter that events tell.
	told
)

// instrument is one figure. Its name and its help are those of docs/metrics.md, which a test
// compares.
type instrument struct {
	name string
	kind kind
	unit string
	help string
}

// The labels of what events tell.
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

// instruments are all but the histograms.
var instruments = []instrument{
	{"semel_deliveries_total", asked, "1", "What the source delivered."},
	{"semel_endings_total", asked, "1", "Deliveries that ended, by how. Their sum is below semel_deliveries_total by what is in hand, or was handed back."},
	{"semel_effects_total", asked, "1", "Effects that were committed, of deliveries and of rows of the inbox."},
	{"semel_duplicates_total", asked, "1", "Copies of what had ended before, for which no handler ran. A success."},
	{"semel_conflicts_total", asked, "1", "Known identities with other content: a producer uses an id twice, or the fingerprint covers too much."},
	{"semel_set_aside_total", told, "1", "Messages that ended without an effect, by how and why."},
	{"semel_retries_total", asked, "1", "Further attempts after a failure of the message itself."},
	{"semel_reruns_total", asked, "1", "Runs of handlers that had run well and were rolled back with their batch."},
	{"semel_retry_budget_waits_total", told, "1", "How often more attempts failed than the retry budget has room for, once a minute at most."},
	{"semel_backstops_total", told, "1", "Doubled effects that a constraint of yours caught: the marker did not know the message."},
	{"semel_same_content_total", asked, "1", "Messages that took effect with an id of their own and the content of one that did so not long ago: a producer may mint an id when it sends again. A residual risk."},
	{"semel_without_key_total", asked, "1", "Messages that were applied while the store of the leased keys did not work. A residual risk."},
	{"semel_intents_sent_again_total", asked, "1", "Intents that duplicates have made due again."},
	{"semel_intents_not_sent_again_total", asked, "1", "Intents that were to be sent again and are not, since the other side may have forgotten their keys. A residual risk."},
	{"semel_claims_total", asked, "1", "Claims of rows of the inbox, and of intents, by how they ended. lost: the lease ended, or a person acted on the row."},
	{"semel_reclaimed_total", asked, "1", "Claims of rows whose former claim ended with its lease, and of which no handler has come to an end since: who had them may have died of them, or was frozen. Also where the answer to a claim was lost."},
	{"semel_batches_total", told, "1", "Batches that are over, by how they ended. unknown: the answer to the commit was lost, and its messages are marked again."},
	{"semel_contended_total", told, "1", "Batches that met a deadlock, a lock time-out or a serialization failure, and run again."},
	{"semel_serialised", askedGauge, "1", "1 while batches run one at a time, because they contend."},
	{"semel_serialised_seconds_total", asked, "s", "For how long they did."},
	{"semel_unsettled_messages", askedGauge, "1", "Deliveries and claims in memory. state: queued, flying (in a transaction), held (until a moment, as the next try), riding (on an earlier copy) or settling."},
	{"semel_unsettled_bytes", askedGauge, "By", "What they hold of memory."},
	{"semel_unsettled_oldest_seconds", askedGauge, "s", "How long ago the oldest of them came; 0 without any."},
	{"semel_lanes", askedGauge, "1", "Partitions and files that are this process's. state: given (all), paused (those that wait for one of their messages)."},
	{"semel_workers", askedGauge, "1", "Workers. state: all, stuck (their handlers go on after their time-outs)."},
	{"semel_ready", askedGauge, "1", "1 while the store and the source work, and the consumer does."},
	{"semel_alive", askedGauge, "1", "0 while the consumer neither works nor pauses by decision."},
	{"semel_not_ready_total", told, "1", "Tries of a part that failed, since this process started. keys: calls that the store of the leased keys did not record at once, each again once a minute."},
	{"semel_paused", askedGauge, "1", "1 while an operator has paused it."},
}

// apiInstruments are those of HTTP APIs, which docs/http.md has.
var apiInstruments = []instrument{
	{"semel_http_requests_total", asked, "1", "Requests, by what became of them, or by the code of the problem that answered."},
	{"semel_http_keys", askedGauge, "1", "Keys. state: in_flight (those that this process works on), open (those with a place, and with New a transaction), most (how many places there are)."},
}

// batchParts are the histograms of what a batch takes: of marks, handlers and commit.
var batchParts = [3]struct{ name, help string }{
	{"semel_batch_mark_seconds", "What it took to open the transaction and to write the marks, with what they waited for another transaction's marks: one statement writes them, and no store says how much of it was waiting. What is far above the median is."},
	{"semel_batch_handle_seconds", "What the handlers of a batch took."},
	{"semel_batch_commit_seconds", "What the commit took, with the statements that handlers queued."},
}

// The upper ends of buckets.
var (
	messageBounds = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 10000}
	secondBounds  = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
)
