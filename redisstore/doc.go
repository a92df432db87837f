// Package redisstore keeps leased keys in Redis: for effects outside of any database, that
// one is under way, by whom and until when, and how it ended (store.KeyStore).
//
// # The guarantee
//
// Leased: of the processes that claim a key one at a time calls, as long as its lease lasts
// by the clock of the server; each call has the same idempotency key; a token that is stale
// changes nothing. The call happens at least once: again where a process died between its
// call and the record of it, which the next one is told as an unknown outcome. It is no
// transaction with anything.
//
// # Its limits
//
// What Redis forgets, happens again. A server that evicts keys, that keeps no append-only
// file, or whose disk is gone, forgets; one that syncs its file each second forgets up to
// two seconds at a crash; a replica that is promoted lacks what had not reached it. New reads
// which of that holds (Durable), and leasedkey refuses what is volatile, unless it is told
// why that is bearable. Keys go when their time is over by the server's clock: one that jumps
// ahead takes them early.
//
// Each step is one script over one key, in constant time, so that it works in a cluster. A
// clock that is set back lets a lease last for once more its length at most.
package redisstore
