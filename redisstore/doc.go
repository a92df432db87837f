// Package redisstore stores leased keys in Redis (keystore.Store). A leased key records, for an effect
// outside of any database, which process is calling, until when, and with what outcome.
//
// # The guarantee
//
// Leased: one process at a time holds a key, as long as its lease lasts by the clock of the Redis
// server. Every call has the same idempotency key. A process with an old token cannot change the key.
// The call happens at least once: if a process dies between its call and the record, the next process
// gets the outcome as unknown. A key is not part of any transaction.
//
// # Limits
//
// If Redis loses a key, the call is made again. Redis loses keys
//   - if it evicts keys, has no append-only file, or loses its disk;
//   - with appendfsync everysec, the last two seconds before a crash;
//   - after a failover, whatever had not reached the promoted replica.
//
// New reads the settings of the server (Durable), and leasedkey refuses a volatile server unless
// AllowVolatile gives a reason. Keys expire by the clock of the server: if it jumps ahead, they expire
// early. If it is set back, a lease lasts up to its length longer.
//
// Each step is one script over one key, in constant time, so that it works in Redis Cluster.
package redisstore
