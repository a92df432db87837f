// Package redisstore stores leased keys in Redis (keystore.Store). A leased key is for an effect outside of any
// database. The key records which process makes the call, until when the process may make it, and the outcome of the
// call.
//
// # The guarantee
//
// Only one process at a time has a key, as long as the lease lasts by the clock of the Redis server. Every call for a
// key has the same idempotency key. A process with an old token cannot change the key. The call happens at least once:
// if a process dies between its call and the record of the outcome, the outcome is unknown, and the next process learns
// this. A key is not part of any transaction.
//
// # Limits
//
// If Redis loses a key, the call is made again. Redis loses keys in these cases:
//   - Redis evicts keys, has no append-only file, or loses its disk.
//   - With appendfsync everysec, a crash loses the last two seconds.
//   - A failover loses all writes that had not reached the promoted replica.
//
// New reads the settings of the server (see Durable). leasedkey refuses a volatile server unless AllowVolatile gives a
// reason. Keys expire by the clock of the server. If the clock of the server jumps ahead, keys expire early. If the
// clock is set back, a lease may last up to twice as long.
//
// Each step is one script over one key, in constant time, so the store works in Redis Cluster.
package redisstore
