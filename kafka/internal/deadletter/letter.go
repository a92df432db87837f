// Package deadletter makes dead letters from records, and records from dead letters.
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

// New returns the dead letter for a consumer's settlement, in a topic: a copy of the original record, not of the message
// made from it.
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

// Original returns the record that a letter is a copy of, with the header of a cut letter. Original returns false
// if the headers do not contain the consumer and the record's origin.
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

// A dead letter that its topic does not accept even alone is cut, so that its lane does not stop permanently: the
// store's row has the whole message. The header semel-length marks a cut letter and contains the length of the value.

// Cut returns a letter that is smaller by one step, or nil if it cannot be cut further. The first step keeps only the
// beginning of the value, the second no value, the third only the headers that Semel adds. Key and other headers are
// removed last because they contain the identity. cuts is the number of earlier cuts.
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

// smallest is the length of a letter that every topic should accept. If a topic refuses it, an operator must fix the
// topic, and cutting more would be useless.
const smallest = 2 << 10

// lengthOf returns the number of bytes in a record's key, value and headers.
func lengthOf(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

func notOurs(h kgo.RecordHeader) bool { return !ours(h.Key) }
