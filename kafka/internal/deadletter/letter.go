// Package deadletter converts records to dead letters, and dead letters back to records.
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
	// MostError is the largest number of bytes of an error's text in a dead letter.
	MostError = 1 << 10
	// The number of bytes of the value that remain after the first truncation.
	keptValue = 64 << 10
)

// New returns the dead letter for a delivery. The dead letter is a copy of the original record, not of the message that
// was made from the record.
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
		{HeaderReason, string(v.Reason)}, {HeaderError, shorten(text)}, {HeaderAttempts, strconv.Itoa(v.Attempts)},
		{HeaderConsumer, consumer}, {HeaderTopic, raw.Topic}, {HeaderPartition, strconv.Itoa(int(raw.Partition))},
		{HeaderOffset, strconv.FormatInt(raw.Offset, 10)}, {HeaderTime, raw.Timestamp.UTC().Format(time.RFC3339Nano)},
	} {
		headers = append(headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
	}
	return &kgo.Record{Topic: topic, Key: raw.Key, Value: raw.Value, Headers: headers}
}

func shorten(text string) string {
	if len(text) > MostError {
		text = text[:MostError] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Headers returns the headers of the newest dead letter in a record.
func Headers(raw *kgo.Record) map[string]string {
	said := map[string]string{}
	for _, h := range raw.Headers {
		if isOwnHeader(h.Key) {
			said[h.Key] = string(h.Value)
		}
	}
	return said
}

// Original returns the original record of a dead letter. If the dead letter was truncated, the original record has the
// header semel-length. Original returns false if the headers do not contain the consumer and the record's origin.
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

// If a topic does not accept the size of a dead letter, even in a batch without other records, the dead letter is
// truncated. If the dead letter were not truncated, the lane of the message would stop permanently. The row in the
// store has the whole message. The header semel-length marks a truncated dead letter and contains the length of the
// original value.

// Cut returns a smaller copy of a dead letter, or nil if the dead letter cannot be made smaller. The first step keeps
// only the beginning of the value, the second step no value, the third step only the headers that Semel adds. The key
// and the other headers are removed last, because they contain the identity. The parameter cuts is the number of
// earlier steps.
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
	case len(old.Key) > 0 || slices.ContainsFunc(old.Headers, isForeignHeader):
		record.Key = nil
		record.Headers = slices.DeleteFunc(slices.Clone(record.Headers), isForeignHeader)
	default:
		return nil
	}
	return record
}

// The length of a dead letter that every topic should accept. If a topic rejects a dead letter of the length smallest,
// an operator must fix the topic; a smaller dead letter would not help.
const smallest = 2 << 10

// lengthOf returns the number of bytes in a record's key, value and headers.
func lengthOf(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

func isForeignHeader(h kgo.RecordHeader) bool { return !isOwnHeader(h.Key) }
