package nats

import (
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
)

// messageOf converts a message of JetStream. Each call returns a new semel.Message, so that a redelivery does not see
// what the consumer wrote into the message before.
func messageOf(raw jetstream.Msg, about *jetstream.MsgMetadata) *semel.Message {
	m := &semel.Message{
		Topic:  raw.Subject(),
		Body:   raw.Data(),
		Origin: semel.Origin{Partition: -1, Offset: int64(about.Sequence.Stream), BrokerID: about.Stream + "/" + strconv.FormatUint(about.Sequence.Stream, 10)},
	}
	m.Origin.SetTime(about.Timestamp)
	headers := raw.Headers()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			m.Headers = append(m.Headers, semel.Header{Name: name, Value: []byte(value)})
		}
	}
	return m
}

// sizeOf returns the number of bytes that a message counts in a source.Bound.
func sizeOf(raw jetstream.Msg) int64 {
	size := len(raw.Subject()) + len(raw.Data())
	for name, values := range raw.Headers() {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return int64(size)
}
