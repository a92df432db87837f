// Package httpkey makes requests of an HTTP API idempotent by the header Idempotency-Key: a client
// that repeats a request gets the answer of the first one.
//
// # The guarantee
//
// New is transactional: key, effect and answer commit in one transaction of the store, and the client
// gets its answer after the commit. A crash leaves all three or none. The handler must make its effect
// in the transaction that TxFrom returns.
//
// NewLeased is leased: of all processes that share a store, one at a time runs the handler for a key.
// Once an answer is kept, no process runs the handler again while the key exists. If a process dies
// between the effect and the record, the outcome is unknown, and LeaseConfig.Window decides whether
// the handler may run again. It then calls others with the same Attempt.IdempotencyKey.
//
// # Limits
//
// The effect happens once; a handler may run again after a rollback. After Config.Keep a key is
// forgotten, and the same key is a new request. An answer is sent after it is kept, so its size is
// limited (Config.MaxAnswer) and streaming is impossible. The context of a handler does not end when
// its client disconnects; it ends after Config.Timeout.
//
// Put a Guard behind authentication and authorisation, so that repeated requests pass them again.
package httpkey
