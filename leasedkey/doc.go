// Package leasedkey calls other systems and records the outcomes. For each key, at most one call is made at a
// time. The package is for effects outside of any database, such as a charge at a payment provider.
//
// # The guarantee
//
// Of all processes that share a store, only one at a time makes a call for a key, if calls obey their contexts and no
// process is frozen for longer than its lease. Every call for a key has the same idempotency key. After a successful
// call, no process makes a call for that key again while the store keeps the key. Later requests with the key get the
// recorded result.
//
// # Limits
//
// The call happens at least once. If a process dies between its call and the record, or the call ends without
// a clear answer, the outcome is unknown. A call with an unknown outcome is repeated only with the same
// idempotency key, and only while the other system remembers that key (Config.Window). After Window,
// Config.Ask asks the other system, or a person decides (Keys.Resolve). If the store loses a key, the call is
// made again.
package leasedkey
