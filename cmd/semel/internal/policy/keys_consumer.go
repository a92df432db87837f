package policy

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
)

// This file has the table of a consumer's keys. The reference lists keys in the table's order.

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
		shape.Key(shape.Meta{Name: "from", Doc: "The name of the consumer's source. Required, except for a consumer that sends [intents](intents.md): with `strategy: lease` and without `from`, the consumer sends the intents that other consumers write."},
			shape.Word{What: "the name of a source"}, func(c *Consumer) *string { return &c.From }),
		shape.Key(shape.Meta{Name: "store", Required: true, Doc: "The name of the store for the consumer's markers and effects, which are written in one transaction."},
			shape.Word{What: "the name of a store"}, func(c *Consumer) *string { return &c.Store }),
		shape.Key(shape.Meta{Name: "type", Doc: "The selector of the message type, such as `header:event-type` or `body:/type`. The selected value is the type that `filter`, `types` of a handler, endpoints and the inbox use. Without this key, or if the selector finds nothing in a message, the type is the attribute of CloudEvents (`ce-type`). A message whose type cannot be read ends as `malformed`. As a selector of an identity or fingerprint, `type` is always the attribute of CloudEvents."},
			selector(typeSelector), func(c *Consumer) *string { return &c.Type }),
		shape.Key(shape.Meta{Name: "filter", Doc: "Selects the messages of the source that this consumer processes; without `filter`, all messages. Each key is a condition, and a message must meet all conditions: `type` lists accepted types (CloudEvents' attribute, or the value that the key `type` beside `filter` selects), `header:NAME` lists accepted values of a header. A message without a type does not meet a condition on `type`. The filter is applied before the identity is read."},
			filterShape{}, func(c *Consumer) *consumer.Filter { return &c.Filter }),
		shape.Key(shape.Meta{Name: "on_filtered", Def: "skip", Doc: "How messages that `filter` excludes end. `skip`: acks and counts them, and writes nothing; `park` and `dead_letter` keep them with the reason `not for this consumer`."},
			onFilteredWord(), func(c *Consumer) *consumer.OnFiltered { return &c.OnFiltered }),
		shape.Key(shape.Meta{Name: "exclusive", Doc: "`true` refuses to start if the last start under this name had other handler types, until `semel consumers identity release`. With `false`, the log has a warning if the handler types changed, unless types were only added. Two services under one name lose messages, because each processes messages of the other."},
			shape.Boolean{}, func(c *Consumer) *bool { return &c.Exclusive }),
		shape.Key(shape.Meta{Name: "strategy", Def: "marker", Doc: "The mechanism that makes the effect happen once."},
			strategyShape(), func(c *Consumer) *Strategy { return &c.Strategy }),
	}
}

func identityKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "identity", Doc: "The selectors of the message's identity, which the producer sets. Required with a marker. Coordinates of the broker are rejected, because redelivery and replay change them."},
			identityShape(), func(c *Consumer) *Identity { return &c.Identity }),
		shape.Key(shape.Meta{Name: "fingerprint", Def: "body", Doc: "The content of a message, to recognise conflicts: `body` (canonical JSON), `none`, or selectors."},
			fingerprintShape{}, func(c *Consumer) *Fingerprint { return &c.Fingerprint }),
		shape.Key(shape.Meta{Name: "version", Doc: "Applies the versions of a stream in order, even if they arrive in another order. The next version is applied, an older one is discarded as `stale version`, and a version whose predecessor is missing waits in the store. The last version of the stream commits with the effect. See [versions](#versions)."},
			shape.Optional[Version](versionShape()), func(c *Consumer) **Version { return &c.Version }),
		shape.Key(shape.Meta{Name: "dedup", Doc: "An existing PostgreSQL table of processed messages in which Semel also writes its markers. Its rows count as applied, and other code may continue to use it. See [adoption](adoption.md)."},
			shape.Optional[Dedup](dedupShape()), func(c *Consumer) **Dedup { return &c.Dedup }),
		shape.Key(shape.Meta{Name: "on_conflict", Def: "park", Doc: "How a conflict ends: a message whose identity was used with other content. `keep_first` acks it and counts it separately."},
			endings(park(), halt(), deadLetter(), shape.Option[consumer.Action]{Word: "keep_first", Value: consumer.ActionKeepFirst}),
			func(c *Consumer) *consumer.Action { return &c.OnConflict }),
		shape.Key(shape.Meta{Name: "on_bad_identity", Def: "park", Doc: "How a message without a usable identity ends. Such a message is never processed and never dropped."},
			endings(park(), halt(), deadLetter()), func(c *Consumer) *consumer.Action { return &c.OnBadIdentity }),
	}
}

func endingKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "on_precondition", Def: "park", Doc: "How a message ends if a guarded statement changed no row and has no `otherwise`."},
			endings(park(), deadLetter(), shape.Option[consumer.Action]{Word: "discard", Value: consumer.ActionDiscard}, shape.Option[consumer.Action]{Word: "retry", Value: consumer.ActionRetry}),
			func(c *Consumer) *consumer.Action { return &c.OnPrecondition }),
		shape.Key(shape.Meta{Name: "on_duplicate", Def: "skip", Doc: "What a duplicate causes in addition to its ack. `skip`: nothing. `re_emit`: the [intents](intents.md) that the first processing wrote are sent again with the same keys. Each intent is sent at most once a minute, and only while the called system remembers the key. See [results](results.md#sending-again). In Go, `OnDuplicate` receives the kept result."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "skip", Value: false}, {Word: "re_emit", Value: true}}},
			func(c *Consumer) *bool { return &c.ReEmitIntents }),
		shape.Key(shape.Meta{Name: "on_parked", Doc: "What happens to messages behind a parked or waiting message. `skip`: later messages are processed, and a later retry is out of order. `block`: later messages of the same key, or with `lanes: partition` of the same partition, wait in the store until the message has ended or an operator unblocks them (`semel messages skip`). The default is `block` with `lanes: key`, a marker and no `version`, otherwise `skip`."},
			shape.Choice[consumer.OnParked]{Options: []shape.Option[consumer.OnParked]{{Word: "skip", Value: consumer.OnParkedSkip}, {Word: "block", Value: consumer.OnParkedBlock}}},
			func(c *Consumer) *consumer.OnParked { return &c.OnParked }),
		shape.Key(shape.Meta{Name: "on_failure", Def: "exit", Doc: "What `semel run` does if this consumer cannot start or ends with an error. `exit`: drains the other consumers and exits with a code other than 0. `continue`: keeps the other consumers running; the start waits at most 15 seconds for this consumer's database if the policy has other databases too. The log repeats the error every minute, and the consumer is not ready. A consumer that halts by its policy, or that waits for its source, such as a missing topic, never ends the other consumers."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "exit", Value: false}, {Word: "continue", Value: true}}}, func(c *Consumer) *bool { return &c.ContinueOnFailure }),
		shape.Key(shape.Meta{Name: "on_store_down", Def: "pause", Doc: "What happens while the store is down. `pause`: nothing is fetched or acked. `apply`: calls are made without a key and counted as `without_key`; only with a Redis store and an `effect` of an idempotent kind. See [leased keys](leased-keys.md#while-redis-is-away)."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "pause", Value: false}, {Word: "apply", Value: true}}}, func(c *Consumer) *bool { return &c.FailOpen }),
		shape.Group(shape.Meta{Name: "retry", Doc: "Retries of failed messages. Waits are random, up to `initial_delay` at first, and double up to `max_delay`."},
			retryShape(), func(c *Consumer) *consumer.RetryPolicy { return &c.Retry }),
		shape.Key(shape.Meta{Name: "dead_letter", Doc: "The destination of messages that end with `dead_letter`, for sources with dead letters."},
			shape.Optional[DeadLetter](deadLetterShape()), func(c *Consumer) **DeadLetter { return &c.DeadLetter }),
	}
}

func paceKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "lanes", Def: "partition", Doc: "Which messages stay in order. `partition`: those of a partition or file; `key`: those with the same key; `none`: no order, the default for webhooks unless `on_parked` is `block`."},
			shape.Choice[consumer.LaneMode]{Options: []shape.Option[consumer.LaneMode]{
				{Word: "partition", Value: consumer.LanesPartition}, {Word: "key", Value: consumer.LanesKey}, {Word: "none", Value: consumer.LanesNone}}},
			func(c *Consumer) *consumer.LaneMode { return &c.Lanes }),
		shape.Key(shape.Meta{Name: "workers", Def: fmt.Sprint(consumer.Defaults().Workers), Doc: "The number of batches that run at the same time."},
			shape.Count{Least: 1, Most: 1024}, func(c *Consumer) *int { return &c.Workers }),
		shape.Group(shape.Meta{Name: "batch", Doc: "The limits of one transaction. A batch does not wait until it is full."},
			batchShape(), func(c *Consumer) *consumer.BatchLimits { return &c.Batch }),
		shape.Key(shape.Meta{Name: "timeout", Def: legible.Span(consumer.Defaults().Timeout), Doc: "The maximum time of a handler for one message."},
			shape.Span{Least: time.Millisecond, Most: shape.Day}, func(c *Consumer) *time.Duration { return &c.Timeout }),
		shape.Key(shape.Meta{Name: "max_in_memory_wait", Def: legible.Span(consumer.Defaults().MaxInMemoryWait), Doc: "The longest wait of a message in memory. Longer waits use the inbox."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(c *Consumer) *time.Duration { return &c.MaxInMemoryWait }),
		shape.Group(shape.Meta{Name: "max_unacked", Doc: "The limits for messages that are fetched and not acked."},
			boundShape(), func(c *Consumer) *source.Bound { return &c.MaxUnacked }),
		shape.Key(shape.Meta{Name: "max_body", Def: shape.ShowSize(consumer.Defaults().MaxBody), Doc: "The maximum size of a body. A message with a longer body ends as `on_bad_identity` says, with the reason `too large`. The store gets only the first 64 KiB of the body, and the header `semel-length` has its length. A limit of the source can only be smaller."},
			shape.Size{Least: 64 << 10, Most: 1 << 30}, func(c *Consumer) *int64 { return &c.MaxBody }),
		shape.Key(shape.Meta{Name: "drain", Def: legible.Span(consumer.Defaults().Drain), Doc: "How long a shutdown waits for running handlers."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(c *Consumer) *time.Duration { return &c.Drain }),
	}
}

func effectKeys() []shape.Field[Consumer] {
	return []shape.Field[Consumer]{
		shape.Key(shape.Meta{Name: "handler", Required: true, Doc: "How a message is processed."},
			handlerShape(), func(c *Consumer) *Handler { return &c.Handler }),
		shape.Key(shape.Meta{Name: "effect", Doc: "The kind of the business effect. A strategy that does not protect this kind is rejected."},
			shape.Optional[Effect](effectShape()), func(c *Consumer) **Effect { return &c.Effect }),
		shape.Key(shape.Meta{Name: "canary", Doc: "The share of messages whose statements run twice on purpose, such as `1/1000`: the transaction of the first success is rolled back, and the statements run again at once. An effect outside the transaction then happens twice, so that a unique key or a reconciliation shows it before a crash does. A hash of the identity chooses the messages. Without this key, no message runs twice. Needs a marker, and a handler that runs in its transaction. See [canary reruns](canary.md)."},
			shape.OneIn{Most: 1_000_000_000}, func(c *Consumer) *int { return &c.Canary }),
		shape.Group(shape.Meta{Name: "replay", Doc: "Whether messages may be replayed (`semel replay`), and whether a replay may have external effects. See [replay](replay.md)."},
			replayShape(), func(c *Consumer) *Replay { return &c.Replay }),
	}
}

// laterKeys returns planned keys. The parser rejects planned keys with the message that the key is not
// available yet.
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

// endings describes a key whose value is one of several results of a message.
func endings(options ...shape.Option[consumer.Action]) shape.Choice[consumer.Action] {
	return shape.Choice[consumer.Action]{Options: options}
}

func retryShape() shape.Object[consumer.RetryPolicy] {
	return shape.Object[consumer.RetryPolicy]{Fields: []shape.Field[consumer.RetryPolicy]{
		shape.Key(shape.Meta{Name: "max_attempts", Def: fmt.Sprint(consumer.Defaults().Retry.MaxAttempts), Doc: "The maximum number of attempts."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.MaxAttempts }),
		shape.Key(shape.Meta{Name: "initial_delay", Def: legible.Span(consumer.Defaults().Retry.InitialDelay), Doc: "The upper bound of the first wait."},
			shape.Span{Least: time.Millisecond, Most: time.Hour}, func(r *consumer.RetryPolicy) *time.Duration { return &r.InitialDelay }),
		shape.Key(shape.Meta{Name: "max_delay", Doc: "The upper bound of every wait; default `max_in_memory_wait`. A message that waits longer than `max_in_memory_wait` waits in the inbox and is acked, which needs a marker."},
			shape.Span{Least: time.Millisecond, Most: 365 * shape.Day}, func(r *consumer.RetryPolicy) *time.Duration { return &r.MaxDelay }),
		shape.Key(shape.Meta{Name: "on_exhausted", Def: "park", Doc: "How a message ends after its last attempt, or after a permanent failure."},
			endings(park(), halt(), deadLetter()), func(r *consumer.RetryPolicy) *consumer.Action { return &r.OnExhausted }),
		shape.Group(shape.Meta{Name: "budget", Doc: "The budget for retries of all messages, which prevents retry storms. Unused budget is kept for up to a minute of `per_second`. A retry beyond the budget waits; waiting does not count as an attempt. Each process has its own budget."},
			budgetShape(), func(r *consumer.RetryPolicy) *consumer.RetryBudget { return &r.Budget }),
		shape.Key(shape.Meta{Name: "serial_after", Def: fmt.Sprint(consumer.Defaults().Retry.SerialAfter), Doc: "The number of consecutive failed attempts, of any messages, after which only one message is tried at a time, at most `budget.per_second`, until a message succeeds. Permanent failures do not count."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.SerialAfter }),
		shape.Key(shape.Meta{Name: "breaker_threshold", Doc: "The number of consecutive messages that fail for good (a permanent failure, a failed precondition, the last attempt) after which the circuit breaker opens. While the breaker is open, the consumer fetches nothing and is not ready. The consumer tries one message at a time, after waits of 1 s up to 1 min, until a message succeeds. A message that fails while the breaker is open waits, for `max_attempts` and at least 5 attempts. By default the breaker opens after 20 messages, and only if no message has succeeded since the start, so one bad producer cannot stop a working consumer. See [when everything fails](inbox.md#when-everything-fails)."},
			shape.Count{Least: 1, Most: 1_000_000}, func(r *consumer.RetryPolicy) *int { return &r.BreakerThreshold }),
		shape.Key(shape.Meta{Name: "disable_breaker", Def: "false", Doc: "`true` keeps the circuit breaker closed, also at the start: every message that fails for good ends as the policy says, and is parked by default."},
			shape.Boolean{}, func(r *consumer.RetryPolicy) *bool { return &r.DisableBreaker }),
	}}
}

func budgetShape() shape.Object[consumer.RetryBudget] {
	return shape.Object[consumer.RetryBudget]{Fields: []shape.Field[consumer.RetryBudget]{
		shape.Key(shape.Meta{Name: "per_second", Def: fmt.Sprint(consumer.Defaults().Retry.Budget.PerSecond), Doc: "Retries a second."},
			shape.Count{Least: 1, Most: 1_000_000}, func(b *consumer.RetryBudget) *int { return &b.PerSecond }),
		shape.Key(shape.Meta{Name: "percent", Def: fmt.Sprint(consumer.Defaults().Retry.Budget.Percent), Doc: "Additional retries for each hundred first attempts."},
			shape.Count{Least: 1, Most: 1000}, func(b *consumer.RetryBudget) *int { return &b.Percent }),
	}}
}

func batchShape() shape.Object[consumer.BatchLimits] {
	return shape.Object[consumer.BatchLimits]{Fields: []shape.Field[consumer.BatchLimits]{
		shape.Key(shape.Meta{Name: "max_size", Def: fmt.Sprint(consumer.Defaults().Batch.MaxSize), Doc: "The maximum number of messages in a transaction."},
			shape.Count{Least: 1, Most: 10_000}, func(b *consumer.BatchLimits) *int { return &b.MaxSize }),
		shape.Key(shape.Meta{Name: "max_time", Def: legible.Span(consumer.Defaults().Batch.MaxTime), Doc: "How long the handlers of a batch may run before it commits."},
			shape.Span{Least: time.Millisecond, Most: time.Minute}, func(b *consumer.BatchLimits) *time.Duration { return &b.MaxTime }),
	}}
}

func boundShape() shape.Object[source.Bound] {
	return shape.Object[source.Bound]{Fields: []shape.Field[source.Bound]{
		shape.Key(shape.Meta{Name: "messages", Def: fmt.Sprint(consumer.Defaults().MaxUnacked.Messages), Doc: "The maximum number of messages."},
			shape.Count{Least: 1, Most: 1_000_000}, func(b *source.Bound) *int { return &b.Messages }),
		shape.Key(shape.Meta{Name: "bytes", Def: shape.ShowSize(consumer.Defaults().MaxUnacked.Bytes), Doc: "The maximum number of bytes; one message may exceed it."},
			shape.Size{Least: 1 << 10, Most: 1 << 40}, func(b *source.Bound) *int64 { return &b.Bytes }),
	}}
}
