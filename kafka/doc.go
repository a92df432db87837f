// Package kafka reads topics as a [source.Source]: each partition that the consumer group assigns to this process is a
// lane. With a [Publisher], a handler writes to topics.
//
// # Guarantees
//
// Every record that a consumer group could read is delivered at least once, in the order of its partition, as long as
// the brokers keep the record. A delivered record is settled when the consumer has acked the record or has written its
// dead letter. The group's offset of a partition
//
//  1. never goes back,
//  2. passes a record only when that record and all earlier delivered records are settled, and
//  3. is moved only by a member that has owned the partition without interruption since the lane was assigned.
//
// So if a process was frozen and continues after another process has taken over, the first process moves no offset: its
// commits carry the old member and generation, and the group refuses these commits. A delivery that is not settled is
// delivered again, by this process or by the next owner of the lane. Together with a store, each message takes effect
// once.
//
// # Limits
//
//   - If a producer retries, it can append a second copy of a record, with another offset. Consumers recognise the copy
//     by the identity of its message. Therefore Semel rejects a policy that uses the offset as identity.
//   - Order is not kept across a change of the number of partitions, because keys move to other
//     partitions.
//   - If records were deleted before they were read, their lane stops. source.Info.LaneFaults and the log
//     name topic, partition, offset and what to do. Records are skipped only if [Config.OnLostRecords]
//     says so. Other lanes continue.
//   - If a batch cannot be read because it is damaged, the source tries a few times. If all attempts fail, the lane
//     stops, as with deleted records.
//   - Brokers can lose records that they had confirmed to the producer. If the end of a log goes back, Fetch returns an
//     error, and the source reads the lane again from the group's offset.
//   - A topic that is deleted and created again is another topic. The lanes of the deleted topic are lost, Fetch
//     returns an error, and the new topic is read from its beginning. Unread records of the old topic are gone.
//
// # Where a topic begins
//
// The source reads a topic from its beginning unless [Config.Start] says otherwise. Start is used once, when the group
// first joins the topic. Before the first record is read, the source writes the start offsets to the consumer's store.
// If the group loses its offsets, the source uses the stored start offsets again. With [Config.TopicPattern], Start
// applies to the topics that existed when the group first joined. A topic that is created later, even while no process
// runs, is read from its beginning. A deleted topic leaves some hundred bytes in the store, which are never removed:
// without them, a new topic with the same name would count as joined for the first time.
//
// # Lanes
//
// A lane is named by topic and partition, as in "payments/3". The lane gets a new epoch each time it is assigned. When
// the group revokes a lane, the consumer finishes the work in progress, for at most [Config.RevokeTimeout]. The source
// then commits the settled records before the next owner gets the partition. A member that was silent for
// [Config.SessionTimeout] has lost its lanes already; the member learns this from its next heartbeat. A consumer whose
// handler does not return keeps its lanes: heartbeats continue, and [LaneState] shows the backlog.
//
// # Records
//
// Key, headers and value become key, headers and body unchanged; nil stays nil. Headers of CloudEvents in
// binary mode are named ce_id on Kafka and become ce-id. With [CloudEvents], an event in structured mode is
// decoded: its attributes become headers and take precedence over the record's headers. A record with a null
// value has an empty body and the header [HeaderTombstone]. A record longer than [Config.MaxRecord], or a
// malformed event, never reaches a handler: it is delivered with the reason why the consumer must not handle
// it.
//
// Origin.BrokerID contains the topic's id, the partition and the offset. With Origin.BrokerID, operators can find the
// record as long as the topic exists.
//
// Records of transactions are delivered when they are committed. An open transaction blocks later records of
// its partition: [LaneState].HeldUp is set, and after a minute the log reports it.
//
// # Memory
//
// Fetched records and records that are not settled together stay within the largest byte limit that Fetch was called
// with, which is the consumer's MaxUnacked.Bytes, plus one batch of at most [Config.MaxBatch] bytes. The limit applies
// to the decompressed size of records. A record that is too large counts with its whole size.
//
// # Dead letters
//
// If the policy of a consumer makes a message a dead letter, the source copies the record unchanged to
// [Config.DeadLetters] and adds headers with the reason and the origin. The order is: all replicas get the copy, then
// the consumer's store records the dead letter, then the original is settled. A crash between two of the steps causes a
// second copy with the same identity, and loses nothing. If the topic does not accept the record because of its size,
// the copy is truncated and gets the header [HeaderLength]; the consumer's row has the whole message.
//
// # Publishing
//
// A [Publisher] is the handler of a consumer that consumer.NewLeased made. When the handler returns nil, all replicas
// have the message at least once, written by an idempotent producer. A second copy is written if a process dies after
// the brokers' answer and before the store records it, or if the process loses its lease. The copy has the same id,
// key, value and headers. Readers of the topic recognise copies by the id, as Semel's consumers do with
// identity.CloudEvents, so each message takes effect once. A running process writes no second record for a message,
// even if the handler runs again because the brokers did not answer.
//
// A record is a CloudEvent in binary mode, with the headers of the message. If a message is identified by the
// id of its CloudEvent, the record keeps id, source and all other attributes: it is the same event in another
// topic. Any other message gets an id made from its identity and the topic (semel.Message.OutputID), and the
// headers of semel.Message.Causation. Records are in the order in which messages were confirmed, not in their
// original order.
package kafka
