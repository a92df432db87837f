// Package kafka reads topics as a [source.Source]: each partition that the consumer group assigns to this process is a
// lane. With a [Publisher] a handler writes to topics.
//
// # Guarantees
//
// Every record that a consumer group could read is delivered at least once, in the order of its partition, as long as
// the brokers keep it. The group's offset of a partition
//
//  1. never goes back,
//  2. passes a record only when that record and all earlier delivered records are settled, and
//  3. is moved only by a member that has owned the partition without interruption since the lane was assigned.
//
// So a process that was frozen, and continues after another process has taken over, moves no offset: its commits carry
// the old member and generation, and the group refuses them. Unsettled deliveries are delivered again, by this process
// or by the next owner. Together with a store, each message then takes effect once.
//
// # Limits
//
//   - A second copy of a record is another record: a producer that retries appends a second one. Identities recognise
//     the copy. Offsets cannot, so they are rejected as identities.
//   - Order is not kept across a change of the number of partitions, because keys move to other partitions.
//   - If records were deleted before they were read, their lane stops. source.Info.LaneFaults and the log name topic,
//     partition, offset and what to do. Records are skipped only if [Config.OnLostRecords] says so. Other lanes
//     continue.
//   - A batch that cannot be read, because it is damaged, is read again a few times. Then its lane stops, as with
//     deleted records.
//   - Brokers can lose records that they had acknowledged. If the log goes back, Fetch returns an error, and the lane is
//     read again from the group's offset.
//   - A topic that is deleted and created again is another topic. Its lanes are lost, Fetch returns an error, and the
//     new topic is read from its beginning. Unread records of the old topic are gone.
//
// # Where a topic begins
//
// A topic is read from its beginning unless [Config.Start] says otherwise. Start is used once, when the group first
// joins the topic. The start offsets are kept in the consumer's store before the first record is read, and are used
// again if the group's offsets are lost. With [Config.TopicPattern], Start applies to the topics that existed when the
// group first joined. A topic that is created later, even while no process runs, is read from its beginning. A deleted
// topic leaves some hundred bytes in the store, which are never removed: without them, a topic of that name would count
// as joined for the first time.
//
// # Lanes
//
// A lane is named by topic and partition, as in "payments/3". It gets a new epoch each time it is assigned. When the
// group revokes a lane, the engine finishes the work in progress, for at most [Config.RevokeTimeout]. Everything settled
// by then is committed before the next owner gets the partition. A member that was silent for [Config.SessionTimeout]
// has lost its lanes already, and learns that with its next heartbeat. A consumer whose handler does not return keeps
// its lanes: heartbeats continue, and [LaneState] shows the backlog.
//
// # Records
//
// Key, headers and value become key, headers and body unchanged; nil stays nil. Headers of CloudEvents in binary mode
// are named ce_id on Kafka and become ce-id. With [CloudEvents], an event in structured mode is decoded: its attributes
// become headers and take precedence over the record's headers. A record with a null value has an empty body and the
// header [HeaderTombstone]. A record longer than [Config.MaxRecord], or a malformed event, is delivered with a reason
// and never reaches a handler.
//
// Origin.BrokerID contains the topic's id, the partition and the offset. It identifies the record for operators, as long
// as the topic exists.
//
// Records of transactions are delivered when they are committed. An open transaction blocks later records of its
// partition: [LaneState].HeldUp is set, and after a minute the log reports it.
//
// # Memory
//
// Fetched and unsettled records together stay within the largest byte limit that Fetch was called with, which is the
// consumer's MaxUnacked.Bytes, plus one batch of at most [Config.MaxBatch] bytes, however well records compress. A
// record that is too large counts with its whole size.
//
// # Dead letters
//
// A message that a policy sends to the dead letters is copied to [Config.DeadLetters] unchanged, with headers that
// contain the reason and the origin. All replicas have the copy before the consumer's store records it, and the original
// is settled after that. A crash in between causes a second copy with the same identity, and loses none. If the topic
// does not accept a record even alone, the copy is cut and gets the header [HeaderLength]; the consumer's row has the
// whole message.
//
// # Publishing
//
// A [Publisher] is the handler of a consumer that consumer.NewLeased made. When the handler returns nil, all replicas
// have each of its messages at least once, written by an idempotent producer. A copy with the same id, key, value and
// headers is written if a process dies after the brokers' answer and before the store records it, or if its lease is
// lost. Readers of the topic recognise copies by that id, as Semel's consumers do with identity.CloudEvents, so each
// message takes effect once. A running process writes no second record for a message, even if the handler runs again
// because the brokers did not answer.
//
// A record is a CloudEvent in binary mode, with the headers of the message. A message that is identified by the id of
// its event keeps id, source and all other attributes: it is the same event in another topic. Any other message gets an
// id made from its identity and the topic (semel.Message.OutputID), and the headers of semel.Message.Causation. Records
// are in the order in which messages were confirmed, not in their original order.
package kafka
