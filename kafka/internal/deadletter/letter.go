// Package deadletter makes dead letters of records, and records of dead letters.
package deadletter

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// MostError is how much of an error's text a dead letter carries.
	MostError = 1 << 10
	// keptValue is how much is kept of a value when a letter is first cut.
	keptValue = 64 << 10
)

// New returns the dead letter of a consumer's settlement in a topic: a copy of the record
// as it was, not of the message it became.
func New(topic, consumer string, raw *kgo.Record, v *source.Settlement) *kgo.Record {
	text := ""
	if v.Err != nil {
		text = v.Err.Error()
	}
	var headers []kgo.RecordHeader
	for _, h := range raw.Headers {
		if name, keep := inLetter(h.Key); keep {
			headers = append(headers, kgo.RecordHeader{Key: name, Value: h.Value})
		}
	}
	for _, h := range []struct{ name, value string }{
		{HeaderReason, string(v.Reason)}, {HeaderError, shortened(text)}, {HeaderAttempts, strconv.Itoa(v.Attempts)},
		{HeaderConsumer, consumer}, {HeaderTopic, raw.Topic}, {HeaderPartition, strconv.Itoa(int(raw.Partition))},
		{HeaderOffset, strconv.FormatInt(raw.Offset, 10)}, {HeaderTime, raw.Timestamp.UTC().Format(time.RFC3339Nano)},
	} {
		headers = append(headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
	}
	return &kgo.Record{Topic: topic, Key: raw.Key, Value: raw.Value, Headers: headers}
}

func shortened(text string) string {
	if len(text) > MostError {
		text = text[:MostError] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Headers returns the headers that the last letter of a record got.
func Headers(raw *kgo.Record) map[string]string {
	said := map[string]string{}
	for _, h := range raw.Headers {
		if ours(h.Key) {
			said[h.Key] = string(h.Value)
		}
	}
	return said
}

// Original returns the record that a letter is the copy of, with the header of a letter that was
// cut; false if the headers do not say whose letter it is and where the record was.
func Original(raw *kgo.Record, said map[string]string) (*kgo.Record, bool) {
	partition, noPartition := strconv.ParseInt(said[HeaderPartition], 10, 32)
	offset, noOffset := strconv.ParseInt(said[HeaderOffset], 10, 64)
	if said[HeaderConsumer] == "" || said[HeaderTopic] == "" || noPartition != nil || noOffset != nil || partition < 0 || offset < 0 {
		return raw, false
	}
	o := &kgo.Record{Topic: said[HeaderTopic], Partition: int32(partition), Offset: offset, Key: raw.Key, Value: raw.Value}
	for _, h := range raw.Headers {
		if name, had := outOfLetter(h.Key); had {
			o.Headers = append(o.Headers, kgo.RecordHeader{Key: name, Value: h.Value})
		} else if h.Key == semelheader.Length {
			o.Headers = append(o.Headers, h)
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, said[HeaderTime]); err == nil {
		o.Timestamp = at
	}
	return o, true
}

// A dead letter that its topic does not take even alone is cut, so that its
// lane does not stand still for ever: the store's row has the message as it
// was. The header the header semel-length says that, and how long the value was.

// Cut returns a letter that is smaller by one step, nil if there is none. First only the
// beginning of the value is kept, then nothing of it, then only the headers that Semel adds. Key
// and other headers go last, because the identity is among them. cuts is how often it was cut.
func Cut(old *kgo.Record, cuts int) *kgo.Record {
	if cuts == 0 && lengthOf(old) <= smallest {
		return nil
	}
	record := &kgo.Record{Topic: old.Topic, Key: old.Key, Value: []byte{}, Headers: old.Headers}
	if cuts == 0 {
		length := strconv.Itoa(len(old.Value))
		record.Headers = append(slices.Clip(old.Headers), kgo.RecordHeader{Key: semelheader.Length, Value: []byte(length)})
	}
	switch {
	case len(old.Value) > keptValue:
		record.Value = old.Value[:keptValue]
	case len(old.Value) > 0:
	case len(old.Key) > 0 || slices.ContainsFunc(old.Headers, notOurs):
		record.Key = nil
		record.Headers = slices.DeleteFunc(slices.Clone(record.Headers), notOurs)
	default:
		return nil
	}
	return record
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
