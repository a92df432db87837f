// Package semel makes message consumers idempotent: brokers deliver a message at least once, Semel makes its
// effect happen once.
//
// The guarantee: for each identity (consumer, source, id), as long as its marker exists, the effects of at most
// one handler run are committed. A marker says that a message was applied if and only if the effects of the
// message were committed in the same transaction. A delivery is acknowledged only after the commit. So each
// message takes effect once per consumer, even if messages are redelivered or replayed and processes are frozen or
// killed.
//
// In plain words: a handler writes through a transaction, Semel writes a marker of the message in the same
// transaction, and the next copy of the message finds the marker and does nothing.
//
// The effect happens once, but the handler may run more than once: after it failed, after another message of the
// batch failed, after a commit with a lost response, and after a crash. Each run starts from the same state,
// because everything that the earlier run wrote was rolled back. Actions outside the transaction, such as a call
// or a mail, may happen again; pass Message.IdempotencyKey with them.
//
// Semel does not promise
//   - anything about effects in a database other than the one that holds the marker;
//   - that a message takes effect once across consumers with different names;
//   - that two messages with different ids are recognised as the same because their contents are equal.
//
// The strategies business key and natural write no markers; their documentation says what they guarantee.
//
// # Packages
//
// This package contains the types that all other packages share: messages and their identities, the errors that
// handlers return, outcomes, reasons, and events for observers. It starts nothing and makes no decisions.
//
// Package consumer runs a handler by a policy. Package identity defines when two deliveries are copies of one
// message. A store holds the markers and gives handlers their transaction: packages sqlstore, pgxstore (a module
// of its own) and, for tests, memstore. A source delivers messages: packages file and kafka (a module of its own).
// Authors of a store implement the interfaces of package store, authors of a source those of package source.
//
// # What a handler returns
//
// A handler returns nil after it has written the effect. Every other result rolls back what the handler wrote for
// this message: Retry and RetryAfter, Permanent, Park, Discard, Duplicate, PreconditionFailed (see OneRow), any
// other error, which is retried as consumer.Config.Retry says, and a panic, which is treated like such an error.
//
// A handler must not commit or roll back its transaction, must not change the message, must return when its
// context ends, and must not use the transaction after it has returned.
//
// # Messages that cannot be processed
//
// A message that cannot be applied is not lost and does not block others: the store keeps it as an inbox row with
// its payload and a reason. Operators can list, retry and discard such rows.
package semel
