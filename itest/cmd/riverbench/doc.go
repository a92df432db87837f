// Riverbench measures the inbox beside River, the queue for Go on PostgreSQL, in
// one run on one server. Both enqueue the same jobs and work on them to their end,
// each job an insert of its own; both is counted.
//
// Where a job has a transaction of its own, River completes it with JobCompleteTx:
// effect and completion are one commit, as with Semel. River's default, which
// completes jobs in batches apart from their effects, is shown beside: a crash
// between the two has the effect twice.
package main
