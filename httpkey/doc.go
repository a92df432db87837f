// Package httpkey makes requests of an HTTP API idempotent by the header Idempotency-Key. A client that
// repeats a request gets the answer of the first request.
//
// # The guarantee
//
// New is transactional: key, effect and answer commit in one transaction of the store, and the client gets its answer
// after the commit. After a crash, either key, effect and answer all exist, or nothing exists. The handler must write
// its effect in the transaction that TxFrom returns.
//
// NewLeased is leased: of all processes that share a store, only one at a time runs the handler for a key.
// After an answer was kept, no process runs the handler again while the key exists. If a process dies between
// the effect and the record, the outcome is unknown, and LeaseConfig.Window decides whether the handler may
// run again. The handler then calls other systems with the same Attempt.IdempotencyKey.
//
// # Limits
//
// The effect happens once, but a handler may run again after a rollback. After Config.Keep a key is removed, and a
// request with that key is a new request. An answer is kept before it is sent. So the size of answers is limited
// (Config.MaxAnswer), and streaming is impossible. The context of a handler does not end when the client disconnects.
// The context ends after Config.Timeout.
//
// Put a Guard behind authentication and authorisation, so that repeated requests are checked again.
package httpkey
