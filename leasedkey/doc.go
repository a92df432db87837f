// Package leasedkey calls other systems at most one call at a time for each key, and records the
// outcomes. The package is for effects outside of any database, such as a charge at a payment
// provider.
//
// # The guarantee
//
// Leased: of all processes that share a store, one at a time calls for a key, as long as calls
// heed their contexts and no process is frozen for longer than its lease. Every call for a key
// has the same idempotency key. After a successful call, no process calls for that key again
// while the store keeps it; later requests get the recorded result.
//
// # Limits
//
// The call happens at least once. If a process dies between its call and the record, or the call
// ends without a clear answer, the outcome is unknown. A call with an unknown outcome is repeated
// only under the same idempotency key, and only while the other side remembers that key
// (Config.Window). After that Config.Ask asks the other side, or a person decides (Keys.Resolve).
// If the store loses a key, the call is made again.
package leasedkey
