package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
)

// The table of a consumer's keys, in the order of the reference.

func consumerShape() object[Consumer] {
	var all []field[Consumer]
	all = append(all, originKeys()...)
	all = append(all, identityKeys()...)
	all = append(all, endingKeys()...)
	all = append(all, paceKeys()...)
	all = append(all, inboxKeys()...)
	all = append(all, retentionKeys()...)
	all = append(all, effectKeys()...)
	all = append(all, laterKeys()...)
	return object[Consumer]{fields: all}
}

func originKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "from", doc: "The name of the source it reads. Required, but of a consumer that sends [intents](intents.md): with `strategy: lease` and without `from` it carries out what others write down for it."},
			word{what: "the name of a source"}, func(c *Consumer) *string { return &c.From }),
		key(meta{name: "store", required: true, doc: "The name of the store that keeps its markers and takes its effects, in one transaction."},
			word{what: "the name of a store"}, func(c *Consumer) *string { return &c.Store }),
		key(meta{name: "type", doc: "Where producers write the type of a message: a selector, as `header:event-type` or `body:/type`. The value found there is the type that `filter`, `types` of a handler, endpoints and the inbox use. Without this key, or if the selector finds nothing in a message, the type is the attribute of CloudEvents (`ce-type`). A message whose type cannot be read ends as `malformed`. `type` as the selector of an identity or fingerprint stays the attribute of CloudEvents."},
			selector(typeSelector), func(c *Consumer) *string { return &c.Type }),
		key(meta{name: "filter", doc: "Selects this consumer's messages of a shared source; without it, all messages are this consumer's. Each key is a condition, and all must be met: `type` lists types (CloudEvents' attribute, or what the key `type` beside `filter` finds), `header:NAME` values of a header, of which a message must have one. A message without a type does not meet a condition on `type`. The filter is judged before the identity."},
			filterShape{}, func(c *Consumer) *consumer.Filter { return &c.Filter }),
		key(meta{name: "on_filtered", def: "skip", doc: "Messages that `filter` leaves out end as this key says: `skip` settles and counts them and writes nothing; `park` and `dead_letter` set them aside as `not for this consumer`."},
			onFilteredWord(), func(c *Consumer) *consumer.OnFiltered { return &c.OnFiltered }),
		key(meta{name: "exclusive", doc: "Refuses to start where another set of handler types was started last under this consumer's name, until `semel identity release` has released it. Without it that is told in the log: of two services under one name each loses the messages that the other takes."},
			boolean{}, func(c *Consumer) *bool { return &c.Exclusive }),
		key(meta{name: "strategy", def: "marker", doc: "What makes the effect happen once."},
			strategyShape(), func(c *Consumer) *Strategy { return &c.Strategy }),
	}
}

func identityKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "identity", doc: "Where the producer's identity of a message is found. Required with a marker. Coordinates of the broker are refused: redelivery and replay change them."},
			identityShape(), func(c *Consumer) *Identity { return &c.Identity }),
		key(meta{name: "fingerprint", def: "body", doc: "What of a message is its content, to recognise other content under the same identity: `body` (canonical JSON), `none`, or selectors."},
			fingerprintShape{}, func(c *Consumer) *Fingerprint { return &c.Fingerprint }),
		key(meta{name: "version", doc: "Lets versions of one stream take effect in their order, whatever order they come in: the next is applied, one that was passed is discarded as `stale version`, and one whose predecessor is missing waits in the store. The stream's last version commits with the effect. See [versions](#versions)."},
			pointer[Version]{versionShape()}, func(c *Consumer) **Version { return &c.Version }),
		key(meta{name: "dedup", doc: "An existing table of processed messages, in PostgreSQL, that is marked in, too: its rows count as applied, and other code may go on using it. See adoption.md."},
			pointer[Dedup]{dedupShape()}, func(c *Consumer) **Dedup { return &c.Dedup }),
		key(meta{name: "on_conflict", def: "park", doc: "What becomes of a message whose identity was used with other content. `keep_first` settles it, counted apart."},
			endings(park(), halt(), deadLetter(), option[consumer.Action]{word: "keep_first", value: consumer.ActionKeepFirst}),
			func(c *Consumer) *consumer.Action { return &c.OnConflict }),
		key(meta{name: "on_bad_identity", def: "park", doc: "What becomes of a message without a usable identity. It is never processed and never dropped."},
			endings(park(), halt(), deadLetter()), func(c *Consumer) *consumer.Action { return &c.OnBadIdentity }),
	}
}

func endingKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "on_precondition", def: "park", doc: "What becomes of a message whose guarded effect met no row and whose statement does not say."},
			endings(park(), deadLetter(), option[consumer.Action]{word: "discard", value: consumer.ActionDiscard}, option[consumer.Action]{word: "retry", value: consumer.ActionRetry}),
			func(c *Consumer) *consumer.Action { return &c.OnPrecondition }),
		key(meta{name: "on_duplicate", def: "skip", doc: "What becomes of a duplicate, besides that it is settled and counted. `skip`: nothing. `re_emit`: the [intents](intents.md) that the first processing wrote, and that were sent, are sent again under the same keys, each once a minute at most, and none whose key the other side may have forgotten. See [results](results.md#sending-again). In Go a duplicate is told of the result that was kept."},
			choice[bool]{options: []option[bool]{{word: "skip", value: false}, {word: "re_emit", value: true}}},
			func(c *Consumer) *bool { return &c.ReEmitIntents }),
		key(meta{name: "on_parked", doc: "What becomes of the messages behind one that is parked, or waits in the store. `skip`: they go on, and a later retry is out of order. `block`: those of its key, or with `lanes: partition` of its partition, wait behind it in the store, until it has ended or somebody lets them pass (`semel inbox skip`). The default is `block` with `lanes: key`, a marker and no `version`, otherwise `skip`."},
			choice[consumer.OnParked]{options: []option[consumer.OnParked]{{word: "skip", value: consumer.OnParkedSkip}, {word: "block", value: consumer.OnParkedBlock}}},
			func(c *Consumer) *consumer.OnParked { return &c.OnParked }),
		key(meta{name: "on_failure", def: "exit", doc: "What `semel run` does when this consumer cannot start, or when its run ends by an error: `exit` drains the other consumers of the process and exits with a code that is not 0; `continue` keeps them running, and does not wait longer than 15 seconds for this consumer's database to answer at the start if the policy uses other databases, too. The log has an error at once and once a minute, and the consumer is not ready. A consumer that halts by its policy never ends the others. Neither does a consumer that waits for its source, such as a topic that does not exist; it continues once the topic exists."},
			choice[bool]{options: []option[bool]{{word: "exit", value: false}, {word: "continue", value: true}}}, func(c *Consumer) *bool { return &c.ContinueOnFailure }),
		key(meta{name: "on_store_down", def: "pause", doc: "What happens while the store cannot work: `pause` fetches nothing and settles nothing. `apply` calls without a key, and is counted as `without_key`: only with a store in Redis and an `effect` of a kind that is idempotent by nature. See [leased keys](leased-keys.md#while-redis-is-away)."},
			choice[bool]{options: []option[bool]{{word: "pause", value: false}, {word: "apply", value: true}}}, func(c *Consumer) *bool { return &c.FailOpen }),
		group(meta{name: "retry", doc: "When a failed message is tried again, and what then. Waits are random, up to `initial_delay`, doubling to `max_delay`."},
			retryShape(), func(c *Consumer) *consumer.RetryPolicy { return &c.Retry }),
		key(meta{name: "dead_letter", doc: "Where messages go that end with `dead_letter`, for sources that keep dead letters."},
			pointer[DeadLetter]{deadLetterShape()}, func(c *Consumer) **DeadLetter { return &c.DeadLetter }),
	}
}

func paceKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "lanes", def: "partition", doc: "What keeps its order: `partition` the messages of a partition or file; `key` those with one key, which the producer sets, while other keys go on; `none` nothing, which is what webhooks have by default, unless `on_parked` is `block`."},
			choice[consumer.LaneMode]{options: []option[consumer.LaneMode]{
				{word: "partition", value: consumer.LanesPartition}, {word: "key", value: consumer.LanesKey}, {word: "none", value: consumer.LanesNone}}},
			func(c *Consumer) *consumer.LaneMode { return &c.Lanes }),
		key(meta{name: "workers", def: fmt.Sprint(consumer.Defaults().Workers), doc: "How many batches run at once."},
			count{least: 1, most: 1024}, func(c *Consumer) *int { return &c.Workers }),
		group(meta{name: "batch", doc: "The bounds of one transaction. A batch never waits to fill."},
			batchShape(), func(c *Consumer) *consumer.BatchLimits { return &c.Batch }),
		key(meta{name: "timeout", def: legible.Span(consumer.Defaults().Timeout), doc: "The longest a handler may run for one message."},
			span{least: time.Millisecond, most: day}, func(c *Consumer) *time.Duration { return &c.Timeout }),
		key(meta{name: "max_in_memory_wait", def: legible.Span(consumer.Defaults().MaxInMemoryWait), doc: "The longest wait that is kept in memory."},
			span{least: time.Millisecond, most: time.Hour}, func(c *Consumer) *time.Duration { return &c.MaxInMemoryWait }),
		group(meta{name: "max_unacked", doc: "The most that is fetched and not settled."},
			boundShape(), func(c *Consumer) *source.Bound { return &c.MaxUnacked }),
		key(meta{name: "max_body", def: showSize(consumer.Defaults().MaxBody), doc: "The longest body that is processed. No store sees a longer one: the message ends as `on_bad_identity` says, as `too large`, with its first 64 KiB and its length in the header `semel-length`. A source's own limit can only be smaller."},
			size{least: 64 << 10, most: 1 << 30}, func(c *Consumer) *int64 { return &c.MaxBody }),
		key(meta{name: "drain", def: legible.Span(consumer.Defaults().Drain), doc: "How long a stop waits for running handlers."},
			span{least: time.Millisecond, most: time.Hour}, func(c *Consumer) *time.Duration { return &c.Drain }),
	}
}

func effectKeys() []field[Consumer] {
	return []field[Consumer]{
		key(meta{name: "handler", required: true, doc: "What is done with a message."},
			handlerShape(), func(c *Consumer) *Handler { return &c.Handler }),
		key(meta{name: "effect", doc: "What kind of business effect this is. Strategies that do not guard it are refused."},
			pointer[Effect]{effectShape()}, func(c *Consumer) **Effect { return &c.Effect }),
		group(meta{name: "replay", doc: "Whether messages may be replayed (`semel replay`), and what a replay may do outside of the store. See [replay](replay.md)."},
			replayShape(), func(c *Consumer) *Replay { return &c.Replay }),
	}
}

// laterKeys are known and not yet available.
func laterKeys() []field[Consumer] {
	return []field[Consumer]{
		later[Consumer]("lease", "The options of leased keys."),
		later[Consumer]("outputs", "Identities of what the consumer sends."),
		later[Consumer]("provider_key", "The idempotency key passed to a provider, and its window."),
		later[Consumer]("backstop", "Alert when a second guard catches a doubled effect."),
		later[Consumer]("start", "Where to begin in a source that was consumed before."),
		later[Consumer]("rate", "The most messages a second."),
	}
}

func park() option[consumer.Action] {
	return option[consumer.Action]{word: "park", value: consumer.ActionPark}
}
func halt() option[consumer.Action] {
	return option[consumer.Action]{word: "halt", value: consumer.ActionHalt}
}

func deadLetter() option[consumer.Action] {
	return option[consumer.Action]{word: "dead_letter", value: consumer.ActionDeadLetter}
}

// endings is a choice among endings.
func endings(options ...option[consumer.Action]) choice[consumer.Action] {
	return choice[consumer.Action]{options: options}
}

func retryShape() object[consumer.RetryPolicy] {
	return object[consumer.RetryPolicy]{fields: []field[consumer.RetryPolicy]{
		key(meta{name: "max_attempts", def: fmt.Sprint(consumer.Defaults().Retry.MaxAttempts), doc: "How often a handler runs at most."},
			count{least: 1, most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.MaxAttempts }),
		key(meta{name: "initial_delay", def: legible.Span(consumer.Defaults().Retry.InitialDelay), doc: "The upper end of the first wait."},
			span{least: time.Millisecond, most: time.Hour}, func(r *consumer.RetryPolicy) *time.Duration { return &r.InitialDelay }),
		key(meta{name: "max_delay", doc: "The upper end of every wait; the default is `max_in_memory_wait`. A message whose wait is longer than `max_in_memory_wait` waits in the store's inbox, and its broker is settled: a marker is needed for that."},
			span{least: time.Millisecond, most: 365 * day}, func(r *consumer.RetryPolicy) *time.Duration { return &r.MaxDelay }),
		key(meta{name: "on_exhausted", def: "park", doc: "What becomes of a message whose attempts are exhausted, or whose failure cannot pass by waiting."},
			endings(park(), halt(), deadLetter()), func(r *consumer.RetryPolicy) *consumer.Action { return &r.OnExhausted }),
		group(meta{name: "budget", doc: "How many retries there are of all messages together, so that many that fail at once are no storm. What is not used is kept, up to what a minute of `per_second` gives; a retry beyond it waits, which is no attempt. Each process has a budget of its own."},
			budgetShape(), func(r *consumer.RetryPolicy) *consumer.RetryBudget { return &r.Budget }),
		key(meta{name: "serial_after", def: fmt.Sprint(consumer.Defaults().Retry.SerialAfter), doc: "After how many failed attempts in a row, of any messages, only one message is tried at a time, and `budget.per_second` at most, until one succeeds. What fails for good does not count."},
			count{least: 1, most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.SerialAfter }),
		key(meta{name: "breaker_threshold", doc: "After how many messages in a row that fail for good (a permanent failure, an unmet condition, the last attempt) a circuit breaker opens: nothing more is fetched, the consumer is not ready, and one message is tried at a time, after waits of 1 s up to 1 min, until one succeeds. Messages that fail meanwhile wait, for `max_attempts` tries and at least 5. Without the key the breaker opens after 20, and only while nothing has succeeded since the start: one bad producer cannot stop a consumer that works. See [when everything fails](inbox.md#when-everything-fails)."},
			count{least: 1, most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.BreakerThreshold }),
		key(meta{name: "disable_breaker", def: "false", doc: "`true` keeps the circuit breaker closed, also at the start: every message that fails for good is set aside."},
			boolean{}, func(r *consumer.RetryPolicy) *bool { return &r.DisableBreaker }),
	}}
}

func budgetShape() object[consumer.RetryBudget] {
	return object[consumer.RetryBudget]{fields: []field[consumer.RetryBudget]{
		key(meta{name: "per_second", def: fmt.Sprint(consumer.Defaults().Retry.Budget.PerSecond), doc: "Retries in a second."},
			count{least: 1, most: 1_000_000}, func(b *consumer.RetryBudget) *int { return &b.PerSecond }),
		key(meta{name: "percent", def: fmt.Sprint(consumer.Defaults().Retry.Budget.Percent), doc: "Retries for each hundred first attempts, beside them."},
			count{least: 1, most: 1000}, func(b *consumer.RetryBudget) *int { return &b.Percent }),
	}}
}

func batchShape() object[consumer.BatchLimits] {
	return object[consumer.BatchLimits]{fields: []field[consumer.BatchLimits]{
		key(meta{name: "max_size", def: fmt.Sprint(consumer.Defaults().Batch.MaxSize), doc: "The most messages of a transaction."},
			count{least: 1, most: 10_000}, func(b *consumer.BatchLimits) *int { return &b.MaxSize }),
		key(meta{name: "max_time", def: legible.Span(consumer.Defaults().Batch.MaxTime), doc: "How long handlers of one batch may run before it commits."},
			span{least: time.Millisecond, most: time.Minute}, func(b *consumer.BatchLimits) *time.Duration { return &b.MaxTime }),
	}}
}

func boundShape() object[source.Bound] {
	return object[source.Bound]{fields: []field[source.Bound]{
		key(meta{name: "messages", def: fmt.Sprint(consumer.Defaults().MaxUnacked.Messages), doc: "The most messages."},
			count{least: 1, most: 1_000_000}, func(b *source.Bound) *int { return &b.Messages }),
		key(meta{name: "bytes", def: showSize(consumer.Defaults().MaxUnacked.Bytes), doc: "The most bytes; one message may go beyond."},
			size{least: 1 << 10, most: 1 << 40}, func(b *source.Bound) *int64 { return &b.Bytes }),
	}}
}
