// Package semel makes message consumers idempotent: brokers deliver a message
// at least once, semel makes its effect happen once.
//
// The guarantee: for each identity (consumer, source, id), as long as its
// marker exists, the effects of at most one handler run are committed, and a
// marker says that a message is applied exactly when those effects are
// committed with it. A delivery is acknowledged only after the commit. It
// follows that whatever is redelivered, replayed, frozen or killed, each
// message takes effect once per consumer.
//
// In plain words: a handler writes through a transaction, semel writes a marker
// of the message in the same transaction, and the next copy finds the marker
// and does nothing.
//
// Once is the effect, not the run. A handler runs again after its own failure,
// after a neighbour's in the same batch, after a lost commit and after a crash;
// each time from nothing, because everything it wrote was rolled back. What it
// does outside of its transaction, such as a call or a mail, may happen again:
// give it Message.IdempotencyKey. Not promised either: anything about effects
// in another database than the marker's, once-only across consumers of
// different names, and that two messages with different ids are the same
// because their contents are. The strategies business key and natural keep no
// marker: what they promise stands with them.
//
// # Parts
//
// This package has the words: Message and Key, what a handler answers, outcomes,
// reasons, errors, and what observers are told. Nothing in it starts, waits or
// decides.
//
// Package consumer runs a handler by a policy. Package identity says what makes
// two deliveries copies of one message. A store keeps the markers and gives
// handlers their transaction: packages sqlstore, pgxstore (a module of its own)
// and, for tests, memstore. A source delivers: packages file and kafka (a module
// of its own). Authors of a store implement package store, authors of a source
// package source.
//
// # What a handler returns
//
// nil says that the effect is written. Everything else takes back what the
// handler wrote, of this message only: Retry and RetryAfter, Permanent, Park,
// Discard, Duplicate, PreconditionFailed (see OneRow), any other error, which is
// tried again as consumer.Config.Retry says, and a panic, which counts as one.
//
// A handler must not commit or roll back its transaction, must not change the
// message, must end when its context does, and must not use the transaction
// after it has returned.
//
// # Messages that are set aside
//
// What cannot be applied is not lost and holds nobody up: it becomes a row with
// its payload and a reason. Stores that can list rows and discard them;
// a consumer runs one again.
package semel
