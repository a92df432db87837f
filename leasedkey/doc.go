// Package leasedkey makes calls whose effect lies outside of any database, such as a charge
// at a payment provider, one at a time for each key, and remembers how they ended.
//
// # The guarantee
//
// Leased: of all processes that share a store one at a time calls for a key, as long as calls
// heed their contexts and processes are not frozen for longer than a lease. Each call for a
// key has the same idempotency key. Once a call has ended well, nobody calls for that key
// again while it is kept, and who asks gets its result.
//
// # Its limits
//
// The call happens at least once. A process may die between its call and the record of it,
// and a call may end without anybody knowing whether it took effect: such an outcome is
// unknown. It is called for again only with the same idempotency key, and only as long as the
// other side remembers that key (Config.Window); after that the other side is asked
// (Config.Ask), or a person has to decide (Keys.Resolve). It is only as sure as its store:
// what the store forgets, happens again.
package leasedkey
