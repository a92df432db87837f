package kafka

import (
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A dead letter that its topic does not take even alone is cut, so that its
// lane does not stand still for ever: the store's row has the message as it
// was. The header HeaderLength says that, and how long the value was.

// cut makes a letter smaller by one step, and reports whether it could: first
// only the begin of the value is kept, then nothing of it, then only what Semel
// says of it. Key and headers go last, because the identity is among them.
func (o *outgoing) cut() bool {
	old := o.record
	if o.cuts == 0 && lengthOf(old) <= smallest {
		return false
	}
	record := &kgo.Record{Topic: old.Topic, Key: old.Key, Value: []byte{}, Headers: old.Headers}
	if o.cuts == 0 {
		length := strconv.Itoa(len(old.Value))
		record.Headers = append(slices.Clip(old.Headers), kgo.RecordHeader{Key: HeaderLength, Value: []byte(length)})
	}
	switch {
	case len(old.Value) > kept:
		record.Value = old.Value[:kept]
	case len(old.Value) > 0:
	case len(old.Key) > 0 || slices.ContainsFunc(old.Headers, notOurs):
		record.Key = nil
		record.Headers = slices.DeleteFunc(slices.Clone(record.Headers), notOurs)
	default:
		return false
	}
	o.record = record
	o.cuts++
	return true
}

// smallest is the length of a letter that every topic should take: one that does
// not is to be mended, and what is cut for it would be cut for nothing.
const smallest = 2 << 10

// lengthOf is what a record holds, in bytes.
func lengthOf(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

func notOurs(h kgo.RecordHeader) bool { return !ours(h.Key) }

// tellCut says that a letter was cut.
func (d *deadLetters) tellCut(letter *kgo.Record) {
	told := []any{"group", d.config.Group, "dead_letters", d.config.DeadLetters}
	for _, h := range letter.Headers {
		switch h.Key {
		case HeaderTopic:
			told = append(told, slog.String("topic", string(h.Value)))
		case HeaderPartition:
			told = append(told, slog.String("partition", string(h.Value)))
		case HeaderOffset:
			told = append(told, slog.String("offset", string(h.Value)))
		case HeaderLength:
			told = append(told, slog.String("bytes", string(h.Value)))
		}
	}
	d.config.Logger.Warn("a dead letter was cut, because the topic does not take records of its size; the row in the store has it as it was. Raise the topic's max.message.bytes to have them whole", told...)
}
