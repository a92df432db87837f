// Package semel makes message consumers idempotent. Brokers deliver a message at least once; Semel makes its
// effect happen once.
//
// The guarantee: for each identity (consumer, source, id), as long as its marker exists, the effects of at
// most one handler run are committed. A marker says that a message was applied if and only if the effects of
// the message were committed in the same transaction. A delivery is acknowledged only after the commit. So
// each message takes effect once per consumer, even if messages are redelivered or replayed, or if processes
// are frozen or killed.
//
// In plain words: a handler writes through a transaction. Semel writes a marker of the message in the same
// transaction. When the message is delivered again, Semel finds the marker and does not run the handler.
//
// The effect happens once, but the handler may run more than once: after it failed, after another message of the batch
// failed, after a commit with a lost response, and after a crash. Each run starts from the same state, because all
// writes of the earlier run were rolled back. Actions outside the transaction, such as a call or a mail, may happen
// again. Pass Message.IdempotencyKey with every call.
//
// Semel does not promise
//   - anything about effects in a database other than the one that holds the marker;
//   - that a message takes effect once across consumers with different names;
//   - that two messages with different ids are recognised as the same because their contents are equal.
//
// The strategies business key and natural write no markers. The documentation of the strategies says what each of them
// guarantees.
//
// # Packages
//
// This package contains the types that all other packages share: messages and their identities, the errors
// that handlers return, outcomes, reasons, and events for observers. The package starts no goroutine and
// makes no decisions.
//
// Package consumer runs a handler by a policy. Package identity defines when two deliveries are copies of one
// message. A store holds the markers and gives handlers their transaction: packages sqlstore, pgxstore (a
// module of its own) and, for tests, memstore. A source delivers messages: packages file and kafka (a module
// of its own). The interfaces for authors of a store are in package store. The interfaces for authors of a
// source are in package source.
//
// # What a handler returns
//
// A handler returns nil after it has written the effect. Every other result rolls back the writes of the handler for
// its message. The other results are Retry and RetryAfter, Permanent, Park, Discard, Duplicate and PreconditionFailed
// (see OneRow). After any other error, the message is retried as consumer.Config.Retry says. A panic is treated like an
// error without a decision.
//
// A handler must not commit or roll back its transaction, must not change the message, must return when its
// context ends, and must not use the transaction after it has returned.
//
// # Messages that cannot be processed
//
// A message that cannot be applied is not lost and does not block other messages. The store keeps the message as an
// inbox row with its payload and a reason. Operators can list, retry and discard the rows of the inbox.
package semel
