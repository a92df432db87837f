package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
)

// The table of a consumer's keys, in the order of the reference.

func consumerShape() shape.Object[Consumer] {
	var all []shape.Field[Consumer]
	all = append(all, originKeys()...)
	all = append(all, identityKeys()...)
	all = append(all, endingKeys()...)
	all = append(all, paceKeys()...)
	all = append(all, inboxKeys()...)
	all = append(all, retentionKeys()...)
	all = append(all, effectKeys()...)
	all = append(all, laterKeys()...)
	return shape.Object[Consumer]{Fields: all}
}

func originKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "from", Doc: "The name of the source it reads. Required, but of a consumer that sends [intents](intents.md): with `strategy: lease` and without `from` it carries out what others write down for it."},
			shape.Word{What: "the name of a source"}, func(c *Consumer) *string { return &c.From }),
		shape.Key(shape.Meta{Name: "store", Required: true, Doc: "The name of the store that keeps its markers and takes its effects, in one transaction."},
			shape.Word{What: "the name of a store"}, func(c *Consumer) *string { return &c.Store }),
		shape.Key(shape.Meta{Name: "type", Doc: "Where producers write the type of a message: a selector, as `header:event-type` or `body:/type`. The value found there is the type that `filter`, `types` of a handler, endpoints and the inbox use. Without this key, or if the selector finds nothing in a message, the type is the attribute of CloudEvents (`ce-type`). A message whose type cannot be read ends as `malformed`. `type` as the selector of an identity or fingerprint stays the attribute of CloudEvents."},
			selector(typeSelector), func(c *Consumer) *string { return &c.Type }),
		shape.Key(shape.Meta{Name: "filter", Doc: "Selects this consumer's messages of a shared source; without it, all messages are this consumer's. Each key is a condition, and all must be met: `type` lists types (CloudEvents' attribute, or what the key `type` beside `filter` finds), `header:NAME` values of a header, of which a message must have one. A message without a type does not meet a condition on `type`. The filter is judged before the identity."},
			filterShape{}, func(c *Consumer) *consumer.Filter { return &c.Filter }),
		shape.Key(shape.Meta{Name: "on_filtered", Def: "skip", Doc: "Messages that `filter` leaves out end as this key says: `skip` settles and counts them and writes nothing; `park` and `dead_letter` set them aside as `not for this consumer`."},
			onFilteredWord(), func(c *Consumer) *consumer.OnFiltered { return &c.OnFiltered }),
		shape.Key(shape.Meta{Name: "exclusive", Doc: "Refuses to start where another set of handler types was started last under this consumer's name, until `semel identity release` has released it. Without it that is told in the log: of two services under one name each loses the messages that the other takes."},
			shape.Boolean{}, func(c *Consumer) *bool { return &c.Exclusive }),
		shape.Key(shape.Meta{Name: "strategy", Def: "marker", Doc: "What makes the effect happen once."},
			strategyShape(), func(c *Consumer) *Strategy { return &c.Strategy }),
	}
}

func identityKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "identity", Doc: "Where the producer's identity of a message is found. Required with a marker. Coordinates of the broker are refused: redelivery and replay change them."},
			identityShape(), func(c *Consumer) *Identity { return &c.Identity }),
		shape.Key(shape.Meta{Name: "fingerprint", Def: "body", Doc: "What of a message is its content, to recognise other content under the same identity: `body` (canonical JSON), `none`, or selectors."},
			fingerprintShape{}, func(c *Consumer) *Fingerprint { return &c.Fingerprint }),
		shape.Key(shape.Meta{Name: "version", Doc: "Lets versions of one stream take effect in their order, whatever order they come in: the next is applied, one that was passed is discarded as `stale version`, and one whose predecessor is missing waits in the store. The stream's last version commits with the effect. See [versions](#versions)."},
			shape.Optional[Version](versionShape()), func(c *Consumer) **Version { return &c.Version }),
		shape.Key(shape.Meta{Name: "dedup", Doc: "An existing table of processed messages, in PostgreSQL, that is marked in, too: its rows count as applied, and other code may go on using it. See adoption.md."},
			shape.Optional[Dedup](dedupShape()), func(c *Consumer) **Dedup { return &c.Dedup }),
		shape.Key(shape.Meta{Name: "on_conflict", Def: "park", Doc: "What becomes of a message whose identity was used with other content. `keep_first` settles it, counted apart."},
			endings(park(), halt(), deadLetter(), shape.Option[consumer.Action]{Word: "keep_first", Value: consumer.ActionKeepFirst}),
			func(c *Consumer) *consumer.Action { return &c.OnConflict }),
		shape.Key(shape.Meta{Name: "on_bad_identity", Def: "park", Doc: "What becomes of a message without a usable identity. It is never processed and never dropped."},
			endings(park(), halt(), deadLetter()), func(c *Consumer) *consumer.Action { return &c.OnBadIdentity }),
	}
}

func endingKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "on_precondition", Def: "park", Doc: "What becomes of a message whose guarded effect met no row and whose statement does not say."},
			endings(park(), deadLetter(), shape.Option[consumer.Action]{Word: "discard", Value: consumer.ActionDiscard}, shape.Option[consumer.Action]{Word: "retry", Value: consumer.ActionRetry}),
			func(c *Consumer) *consumer.Action { return &c.OnPrecondition }),
		shape.Key(shape.Meta{Name: "on_duplicate", Def: "skip", Doc: "What becomes of a duplicate, besides that it is settled and counted. `skip`: nothing. `re_emit`: the [intents](intents.md) that the first processing wrote, and that were sent, are sent again under the same keys, each once a minute at most, and none whose key the other side may have forgotten. See [results](results.md#sending-again). In Go a duplicate is told of the result that was kept."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "skip", Value: false}, {Word: "re_emit", Value: true}}},
			func(c *Consumer) *bool { return &c.ReEmitIntents }),
		shape.Key(shape.Meta{Name: "on_parked", Doc: "What becomes of the messages behind one that is parked, or waits in the store. `skip`: they go on, and a later retry is out of order. `block`: those of its key, or with `lanes: partition` of its partition, wait behind it in the store, until it has ended or somebody lets them pass (`semel inbox skip`). The default is `block` with `lanes: key`, a marker and no `version`, otherwise `skip`."},
			shape.Choice[consumer.OnParked]{Options: []shape.Option[consumer.OnParked]{{Word: "skip", Value: consumer.OnParkedSkip}, {Word: "block", Value: consumer.OnParkedBlock}}},
			func(c *Consumer) *consumer.OnParked { return &c.OnParked }),
		shape.Key(shape.Meta{Name: "on_failure", Def: "exit", Doc: "What `semel run` does when this consumer cannot start, or when its run ends by an error: `exit` drains the other consumers of the process and exits with a code that is not 0; `continue` keeps them running, and does not wait longer than 15 seconds for this consumer's database to answer at the start if the policy uses other databases, too. The log has an error at once and once a minute, and the consumer is not ready. A consumer that halts by its policy never ends the others. Neither does a consumer that waits for its source, such as a topic that does not exist; it continues once the topic exists."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "exit", Value: false}, {Word: "continue", Value: true}}}, func(c *Consumer) *bool { return &c.ContinueOnFailure }),
		shape.Key(shape.Meta{Name: "on_store_down", Def: "pause", Doc: "What happens while the store cannot work: `pause` fetches nothing and settles nothing. `apply` calls without a key, and is counted as `without_key`: only with a store in Redis and an `effect` of a kind that is idempotent by nature. See [leased keys](leased-keys.md#while-redis-is-away)."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "pause", Value: false}, {Word: "apply", Value: true}}}, func(c *Consumer) *bool { return &c.FailOpen }),
		shape.Group(shape.Meta{Name: "retry", Doc: "When a failed message is tried again, and what then. Waits are random, up to `initial_delay`, doubling to `max_delay`."},
			retryShape(), func(c *Consumer) *consumer.RetryPolicy { return &c.Retry }),
		shape.Key(shape.Meta{Name: "dead_letter", Doc: "Where messages go that end with `dead_letter`, for sources that keep dead letters."},
			shape.Optional[DeadLetter](deadLetterShape()), func(c *Consumer) **DeadLetter { return &c.DeadLetter }),
	}
}

func paceKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "lanes", Def: "partition", Doc: "What keeps its order: `partition` the messages of a partition or file; `key` those with one key, which the producer sets, while other keys go on; `none` nothing, which is what webhooks have by default, unless `on_parked` is `block`."},
			shape.Choice[consumer.LaneMode]{Options: []shape.Option[consumer.LaneMode]{
				{Word: "partition", Value: consumer.LanesPartition}, {Word: "key", Value: consumer.LanesKey}, {Word: "none", Value: consumer.LanesNone}}},
			func(c *Consumer) *consumer.LaneMode { return &c.Lanes }),
		shape.Key(shape.Meta{Name: "workers", Def: fmt.Sprint(consumer.Defaults().Workers), Doc: "How many batches run at once."},
			shape.Count{Least: 1, Most: 1024}, func(c *Consumer) *int { return &c.Workers }),
		shape.Group(shape.Meta{Name: "batch", Doc: "The bounds of one transaction. A batch never waits to fill."},
			batchShape(), func(c *Consumer) *consumer.BatchLimits { return &c.Batch }),
		shape.Key(shape.Meta{Name: "timeout", Def: legible.Span(consumer.Defaults().Timeout), Doc: "The longest a handler may run for one message."},
			shape.Span{Least: time.Millisecond, Most: shape.Day}, func(c *Consumer) *time.Duration { return &c.Timeout }),
		shape.Key(shape.Meta{Name: "max_in_memory_wait", Def: legible.Span(consumer.Defaults().MaxInMemoryWait), Doc: "The longest wait that is kept in memory."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(c *Consumer) *time.Duration { return &c.MaxInMemoryWait }),
		shape.Group(shape.Meta{Name: "max_unacked", Doc: "The most that is fetched and not settled."},
			boundShape(), func(c *Consumer) *source.Bound { return &c.MaxUnacked }),
		shape.Key(shape.Meta{Name: "max_body", Def: shape.ShowSize(consumer.Defaults().MaxBody), Doc: "The longest body that is processed. No store sees a longer one: the message ends as `on_bad_identity` says, as `too large`, with its first 64 KiB and its length in the header `semel-length`. A source's own limit can only be smaller."},
			shape.Size{Least: 64 << 10, Most: 1 << 30}, func(c *Consumer) *int64 { return &c.MaxBody }),
		shape.Key(shape.Meta{Name: "drain", Def: legible.Span(consumer.Defaults().Drain), Doc: "How long a stop waits for running handlers."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(c *Consumer) *time.Duration { return &c.Drain }),
	}
}

func effectKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "handler", Required: true, Doc: "What is done with a message."},
			handlerShape(), func(c *Consumer) *Handler { return &c.Handler }),
		shape.Key(shape.Meta{Name: "effect", Doc: "What kind of business effect this is. Strategies that do not guard it are refused."},
			shape.Optional[Effect](effectShape()), func(c *Consumer) **Effect { return &c.Effect }),
		shape.Group(shape.Meta{Name: "replay", Doc: "Whether messages may be replayed (`semel replay`), and what a replay may do outside of the store. See [replay](replay.md)."},
			replayShape(), func(c *Consumer) *Replay { return &c.Replay }),
	}
}

// laterKeys are known and not yet available.
func laterKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Later[Consumer]("lease", "The options of leased keys."),
		shape.Later[Consumer]("outputs", "Identities of what the consumer sends."),
		shape.Later[Consumer]("provider_key", "The idempotency key passed to a provider, and its window."),
		shape.Later[Consumer]("backstop", "Alert when a second guard catches a doubled effect."),
		shape.Later[Consumer]("start", "Where to begin in a source that was consumed before."),
		shape.Later[Consumer]("rate", "The most messages a second."),
	}
}

func park() shape.Option[consumer.Action] {
	return shape.Option[consumer.Action]{Word: "park", Value: consumer.ActionPark}
}
func halt() shape.Option[consumer.Action] {
	return shape.Option[consumer.Action]{Word: "halt", Value: consumer.ActionHalt}
}

func deadLetter() shape.Option[consumer.Action] {
	return shape.Option[consumer.Action]{Word: "dead_letter", Value: consumer.ActionDeadLetter}
}

// endings is a choice among endings.
func endings(options ...shape.Option[consumer.Action]) shape.Choice[consumer.Action] {
	return shape.Choice[consumer.Action]{Options: options}
}

func retryShape() shape.Object[consumer.RetryPolicy] {
	return shape.Object[consumer.RetryPolicy]{Fields: []shape.Field[consumer.RetryPolicy]{
		shape.Key(shape.Meta{Name: "max_attempts", Def: fmt.Sprint(consumer.Defaults().Retry.MaxAttempts), Doc: "How often a handler runs at most."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.MaxAttempts }),
		shape.Key(shape.Meta{Name: "initial_delay", Def: legible.Span(consumer.Defaults().Retry.InitialDelay), Doc: "The upper end of the first wait."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(r *consumer.RetryPolicy) *time.Duration { return &r.InitialDelay }),
		shape.Key(shape.Meta{Name: "max_delay", Doc: "The upper end of every wait; the default is `max_in_memory_wait`. A message whose wait is longer than `max_in_memory_wait` waits in the store's inbox, and its broker is settled: a marker is needed for that."},
			shape.Span{Least: time.Millisecond, Most: 365 * shape.Day}, func(r *consumer.RetryPolicy) *time.Duration { return &r.MaxDelay }),
		shape.Key(shape.Meta{Name: "on_exhausted", Def: "park", Doc: "What becomes of a message whose attempts are exhausted, or whose failure cannot pass by waiting."},
			endings(park(), halt(), deadLetter()), func(r *consumer.RetryPolicy) *consumer.Action { return &r.OnExhausted }),
		shape.Group(shape.Meta{Name: "budget", Doc: "How many retries there are of all messages together, so that many that fail at once are no storm. What is not used is kept, up to what a minute of `per_second` gives; a retry beyond it waits, which is no attempt. Each process has a budget of its own."},
			budgetShape(), func(r *consumer.RetryPolicy) *consumer.RetryBudget { return &r.Budget }),
		shape.Key(shape.Meta{Name: "serial_after", Def: fmt.Sprint(consumer.Defaults().Retry.SerialAfter), Doc: "After how many failed attempts in a row, of any messages, only one message is tried at a time, and `budget.per_second` at most, until one succeeds. What fails for good does not count."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.SerialAfter }),
		shape.Key(shape.Meta{Name: "breaker_threshold", Doc: "After how many messages in a row that fail for good (a permanent failure, an unmet condition, the last attempt) a circuit breaker opens: nothing more is fetched, the consumer is not ready, and one message is tried at a time, after waits of 1 s up to 1 min, until one succeeds. Messages that fail meanwhile wait, for `max_attempts` tries and at least 5. Without the key the breaker opens after 20, and only while nothing has succeeded since the start: one bad producer cannot stop a consumer that works. See [when everything fails](inbox.md#when-everything-fails)."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.BreakerThreshold }),
		shape.Key(shape.Meta{Name: "disable_breaker", Def: "false", Doc: "`true` keeps the circuit breaker closed, also at the start: every message that fails for good is set aside."},
			shape.Boolean{}, func(r *consumer.RetryPolicy) *bool { return &r.DisableBreaker }),
	}}
}

func budgetShape() shape.Object[consumer.RetryBudget] {
	return shape.Object[consumer.RetryBudget]{Fields: []shape.Field[consumer.RetryBudget]{
		shape.Key(shape.Meta{Name: "per_second", Def: fmt.Sprint(consumer.Defaults().Retry.Budget.PerSecond), Doc: "Retries in a second."},
			shape.Count{Least: 1, Most: 1_000_000}, func(b *consumer.RetryBudget) *int { return &b.PerSecond }),
		shape.Key(shape.Meta{Name: "percent", Def: fmt.Sprint(consumer.Defaults().Retry.Budget.Percent), Doc: "Retries for each hundred first attempts, beside them."},
			shape.Count{Least: 1, Most: 1000}, func(b *consumer.RetryBudget) *int { return &b.Percent }),
	}}
}

func batchShape() shape.Object[consumer.BatchLimits] {
	return shape.Object[consumer.BatchLimits]{Fields: []shape.Field[consumer.BatchLimits]{
		shape.Key(shape.Meta{Name: "max_size", Def: fmt.Sprint(consumer.Defaults().Batch.MaxSize), Doc: "The most messages of a transaction."},
			shape.Count{Least: 1, Most: 10_000}, func(b *consumer.BatchLimits) *int { return &b.MaxSize }),
		shape.Key(shape.Meta{Name: "max_time", Def: legible.Span(consumer.Defaults().Batch.MaxTime), Doc: "How long handlers of one batch may run before it commits."},
			shape.Span{Least: time.Millisecond, Most: time.Minute}, func(b *consumer.BatchLimits) *time.Duration { return &b.MaxTime }),
	}}
}

func boundShape() shape.Object[source.Bound] {
	return shape.Object[source.Bound]{Fields: []shape.Field[source.Bound]{
		shape.Key(shape.Meta{Name: "messages", Def: fmt.Sprint(consumer.Defaults().MaxUnacked.Messages), Doc: "The most messages."},
			shape.Count{Least: 1, Most: 1_000_000}, func(b *source.Bound) *int { return &b.Messages }),
		shape.Key(shape.Meta{Name: "bytes", Def: shape.ShowSize(consumer.Defaults().MaxUnacked.Bytes), Doc: "The most bytes; one message may go beyond."},
			shape.Size{Least: 1 << 10, Most: 1 << 40}, func(b *source.Bound) *int64 { return &b.Bytes }),
	}}
}
