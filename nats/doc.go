// Package nats reads a stream of NATS JetStream as a [source.Source], through a durable pull consumer with explicit ack.
// Programs usually import the package beside nats.go, under another name.
//
// # Guarantees
//
// Every message that the consumer of the stream delivers is delivered at least once, as long as the stream keeps the
// message. The source acks a delivery after the consumer has committed the effect, and waits until the server has
// confirmed the ack. Together with a store, each message takes effect once.
//
// # No fence
//
// JetStream does not know which process owns a delivery: whoever ever got a message may ack it, nack it, extend it or
// terminate it. A process that was frozen could therefore harm the process that got its messages. The source keeps these
// rules:
//
//   - It acks at any time. A late ack does no harm, because the effect is committed.
//   - It nacks and extends a delivery only while it surely holds the delivery. The hold time is the ack wait of the consumer,
//     or the shortest delay of its backoff. The source measures the hold time with its monotonic clock, from the time of the
//     pull request that brought the message, or of the last extension that the server has confirmed in time.
//   - It never terminates a message.
//   - It keeps nothing to be sent after a reconnect.
//   - It extends deliveries only in the epoch of their lane. The lane is lost when the consumer or the stream is deleted.
//
// A process may send a nack or an extension within the hold time that arrives late, for example because the machine
// stopped in between. A late nack causes one more copy, which the store recognises. A late extension delays a
// redelivery once.
//
// # Limits
//
//   - The source has one lane for all messages of the consumer, and no order: several processes share the messages, and a
//     redelivered message arrives after later ones. [source.Info.Unordered] is true, so a consumer needs
//     consumer.LanesNone.
//   - There are no dead letters, no ages of messages, no pinned clients and no structured CloudEvents.
//   - If the stream removes messages before the consumer gets them, because of its limits or a purge, they are lost. The
//     log names their sequences when the source looks next, at the start and every ten seconds, unless the consumer filters
//     by subject.
//   - The sequence of a message is no identity: a message that is published again, or a stream that is created again, has
//     other sequences. Use the header Nats-Msg-Id or an id of the producer.
//   - Stop all processes before you delete a stream and create it again: an ack that is on its way meanwhile would ack the
//     new message with the same sequence.
//
// # Messages
//
// Subject, headers and data become topic, headers and body. JetStream has no keys. Headers of CloudEvents in binary mode
// are named ce-id and so on, as everywhere. Origin.Offset is the sequence of the message in its stream.
//
// # Memory and waiting
//
// The source asks the server for as many messages and bytes as the consumer asks for, with one pull request at a time. A
// nacked message waits in memory, and is extended until its delay has passed. The limit max_ack_pending of the consumer
// includes waiting messages.
package nats
