package admin

import (
	"context"
)

// CommitResultWriter is implemented by a store.Batch of a store with admin.Results. A CommitResultWriter sends the
// result of a handler together with the statements of the commit, so that the result costs no round trip.
type CommitResultWriter interface {
	// WriteResultAtCommit makes Commit write a result, as admin.Results.KeepResult does. If writing the
	// result fails, Commit returns the error. The caller must not change result until the batch has ended.
	WriteResultAtCommit(of ResultOf, result []byte)
}

// SchemaChecker is implemented by a store that can check its schema. The engine calls Check before the first
// fetch, before the first transaction after a failure of the store, and once an hour. If a later check
// returns an error, the store counts as down.
type SchemaChecker interface {
	// Check returns nil if the tables fit this release. If the tables do not fit, Check returns an error that wraps
	// semel.ErrSchema and names the remedy. Check is safe for concurrent use.
	Check(ctx context.Context) error
}

// Interner is implemented by a store that can number many sources in one call. Producers choose their
// sources, so a batch may have as many new sources as messages. Without Interner, the engine calls
// store.TxStore.Scope for each new source.
type Interner interface {
	// Scopes does what store.TxStore.Scope does, for several sources of one consumer. Scopes returns the numbers in the
	// order of the sources. A store in which each statement costs a round trip uses the same number of statements for
	// any number of sources.
	Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error)
}

// QueuedStatements is implemented by a store.Batch whose handlers only queue their statements. Commit sends
// the queued statements.
type QueuedStatements interface {
	// Queued returns the number of queued statements. The caller extends the deadline of Commit by
	// store.TxOptions.Statement for each queued statement. If the server does not respond, Commit ends
	// earlier, after store.TxOptions.Answer.
	Queued() int
	// OnCallback registers the function begin. The engine calls OnCallback before Commit, because Commit may call
	// functions of handlers (callbacks), such as functions that read result rows before COMMIT is sent.
	// consumer.Config.Timeout limits callbacks as it limits handlers. Before each callback, the batch calls the
	// function begin with the index of the message's marker. After the callback, the batch calls the function that
	// begin has returned. If a callback exceeds the timeout, the engine kills the batch while the callback runs. An
	// exceeded timeout counts as an attempt of the message, whatever the callback returns.
	OnCallback(begin func(mark int) (ended func()))
}
