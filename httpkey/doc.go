// Package httpkey makes the requests of an HTTP API take effect once, by the header
// Idempotency-Key: a client that repeats a request gets the answer of the first one.
//
// # The guarantee
//
// Of New, transactional: key, effect and answer are one commit in the database of the store,
// and the client hears nothing before. A crash, at any point, leaves all of it or nothing.
// The effect must be made in the transaction that TxFrom returns.
//
// Of NewLeased, leased: of all processes that share a store one at a time runs the handler for
// a key, and once an answer is kept nobody runs it again while the key is. A process may die
// between the effect and the record of it: such an outcome is unknown, and LeaseConfig.Window
// says whether the handler may run again for it, which then calls others with the same
// Attempt.IdempotencyKey.
//
// # Its limits
//
// Once is the effect: a handler may run again after it was rolled back. A key that is gone,
// because Config.Keep has passed, is a new one. An answer is held back until it is kept, and
// is therefore bounded (Config.MaxAnswer): there is no streaming. A handler's context is not
// that of its client, who may go away, and ends with Config.Timeout.
//
// Put a Guard behind authentication and authorisation: a repeated request passes them anew.
package httpkey
