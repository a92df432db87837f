// Package kafka reads topics as a [source.Source]: each partition that the
// consumer group gives this process is a lane. With a [Publisher] a handler
// writes to topics.
//
// # What is promised
//
// Every record that a group could read is delivered to it at least once, in the
// order of its partition, for as long as the brokers keep it. The group's
// offset of a partition
//
//  1. goes only forward,
//  2. passes a record only when that record and all before it that were
//     delivered are settled, and
//  3. is moved only by the member that has owned the partition without a break
//     since it was given the lane.
//
// So a process that was frozen and comes back, after another one has gone
// further, moves nothing: its commits carry the member and generation under
// which it held the lane, and the group refuses them. What was delivered and
// not settled comes again, here or to the next owner. With a store behind it,
// each message then takes effect once.
//
// # What is not
//
//   - A second copy of a record is another record: a producer that sends again
//     appends one. Identities find it, offsets cannot, and are refused as one.
//   - Order across a change of the number of partitions: keys move then.
//   - Records that were deleted before they were read. Their lane
//     stands still, and source.Info.LaneFaults and the log name topic, partition,
//     offset and what to do; nothing is skipped unless [Config.OnLostRecords]
//     says so, and other lanes go on.
//   - A batch that cannot be read, because it is damaged. It is read again, and
//     then its lane stands still as with records that were deleted.
//   - What brokers lose that they had acknowledged. Where the log goes back,
//     Fetch says so, and the lane is read again from the group's offset.
//   - A topic that is deleted and created anew is another topic. Its lanes are
//     lost, Fetch says so, and the new one is read from its beginning. What the
//     old one held unread is gone.
//
// # Where a topic begins
//
// A topic is read from its beginning, unless [Config.Start] says otherwise. Start
// counts once, when the group first joins the topic: where it led is kept in the
// consumer's store before the first record is read, and counts again where the
// group's offsets are gone. With [Config.TopicPattern] it is for the topics that
// were there at the group's first join; what is created later, also while no
// process runs, is read from its beginning. A topic that is gone leaves some
// hundred bytes in the store, which nothing removes: without them its return
// would be a first join.
//
// # Lanes
//
// A lane's name is topic and partition, "payments/3". It has a new epoch each
// time it is given. When the group takes a lane away, the engine ends what it
// began, for at most [Config.RevokeTimeout]; what is settled by then is
// committed, and only then the next owner gets the partition. A member that was
// silent for [Config.SessionTimeout] has lost its lanes already and is told so
// when it is heard again. A consumer whose handler does not end keeps its
// lanes: heartbeats run beside the work, and [LaneState] shows what waits.
//
// # Records
//
// Key, headers and value become key, headers and body, as they are; nil stays
// nil. Headers of CloudEvents in binary mode are written ce_id on Kafka and
// become ce-id. With [CloudEvents] an event in structured mode is opened: its
// attributes become headers before the record's own, which it overrules.
// A record whose value is null has an empty body and the header
// [HeaderTombstone]. One longer than [Config.MaxRecord], or an event that is
// malformed, is delivered with a reason and never reaches a handler.
//
// Origin.BrokerID is the topic's id, the partition and the offset. It names the
// record for people, for as long as the topic lives.
//
// Records of transactions are delivered when they are committed. One that
// stays open holds up what is behind it in its partition: that is
// [LaneState].HeldUp, and after a minute a line in the log.
//
// # Memory
//
// What is fetched and what is unsettled stay together within the largest bound
// on bytes that Fetch was called with, the consumer's MaxUnacked.Bytes, and
// one batch of at most [Config.MaxBatch] bytes, however well records compress.
// Of a record that is too large the whole is counted.
//
// # Dead letters
//
// A message that a policy sends to the dead letters is copied to
// [Config.DeadLetters] as it was, with headers that say why and from where.
// The copy is on all replicas before the consumer's store notes it, and the
// original is settled after that. A crash in between makes a second copy of the
// same identity, and loses none. A record that the topic does not take even
// alone is cut, with the header [HeaderLength] to say so; the consumer's row has
// it as it was.
//
// # Publishing
//
// A [Publisher] is the handler of a consumer that consumer.NewLeased made. Each message that
// it was given is in its topic at least once when the handler has returned nil: on
// all replicas, by an idempotent producer. It is there again, with the same id, key,
// value and headers, where a process died between the brokers' answer and the record
// of it, or lost its lease. So whoever reads the topic recognises copies by that id,
// as Semel's consumers do with identity.CloudEvents: each takes effect once.
// One process writes no second record for a message while it lives, however often
// the handler runs because the brokers did not answer.
//
// A record is a CloudEvent in binary mode, with the headers that the message had.
// A message that is recognised by the id of its event keeps id, source and all
// other attributes: it is the same event in another topic. Any other gets an id made
// of its identity and the topic (semel.Message.OutputID), and the headers of
// semel.Message.Causation. The order of a topic is that in which messages were
// confirmed, which is none that they had before.
package kafka
