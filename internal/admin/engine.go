package admin

import (
	"context"
)

// CommitResultWriter is implemented by a store.Batch of a store with admin.Results that writes results when it commits.
// The result is sent together with the statements of the commit and costs no round trip.
type CommitResultWriter interface {
	// WriteResultAtCommit makes Commit write a result, as admin.Results.KeepResult does. Commit
	// returns the error if that fails. The caller must not change result until the batch has
	// ended.
	WriteResultAtCommit(of ResultOf, result []byte)
}

// SchemaChecker is implemented by a store that can check its schema. The engine calls Check before
// the first fetch, before the first transaction after a failure of the store, and once an hour. An
// error of a later check counts as a store that is down.
type SchemaChecker interface {
	// Check returns nil if the tables fit this release, or an error that wraps semel.ErrSchema
	// and names the remedy. Check is safe for concurrent use.
	Check(ctx context.Context) error
}

// Interner is implemented by a store that can assign the scopes of many sources at once. Producers
// choose their sources, so a batch may have as many new sources as messages. Without Interner, the
// engine calls store.TxStore.Scope for each of them.
type Interner interface {
	// Scopes does what store.TxStore.Scope does for several sources of one consumer, and returns the
	// numbers in the order of the sources. If statements cost a round trip, the number of
	// statements does not depend on the number of sources.
	Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error)
}

// QueuedStatements is implemented by a store.Batch whose handlers only queue their statements. Commit sends them.
type QueuedStatements interface {
	// Queued returns the number of queued statements. The caller extends the deadline of Commit
	// by store.TxOptions.Statement for each of them. If the server does not respond,
	// store.TxOptions.Answer ends Commit earlier.
	Queued() int
	// OnCallback registers begin before Commit, for a Commit that calls functions of its handlers,
	// such as functions that read result rows before COMMIT is sent. consumer.Config.Timeout limits
	// these functions as it limits handlers. The batch calls begin with the mark of the message
	// before each such function, and calls ended after the function returned. If a function exceeds
	// the timeout, the engine kills the batch while the function runs, and the message is charged
	// with an attempt, whatever the function returns.
	OnCallback(begin func(mark int) (ended func()))
}
