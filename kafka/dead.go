package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// mostError is how much of an error's text a dead letter carries.
const mostError = 1 << 10

// DeadLetters implements semel.DeadLettering. Its error says that
// Config.DeadLetters is empty.
func (s *Source) DeadLetters(consumer string) error {
	if s.config.DeadLetters == "" {
		return errors.New("kafka: there is no topic for dead letters; set Config.DeadLetters (in a policy: kafka: {dead_letters: …}), or end messages otherwise")
	}
	s.consumer = consumer
	return nil
}

// writeDeadLetters copies deliveries to the topic for dead letters and waits
// until all replicas have them. It returns those that could not be written.
func (s *Source) writeDeadLetters(ctx context.Context, all []semel.Settlement, letters []int) ([]int, error) {
	if len(letters) == 0 {
		return nil, nil
	}
	if s.config.DeadLetters == "" {
		return letters, fmt.Errorf("kafka: there is no topic for dead letters: %w", semel.ErrUnsupported)
	}
	errs := make([]error, len(letters))
	var written sync.WaitGroup
	for n, i := range letters {
		letter := s.deadLetter(&all[i])
		if letter == nil {
			continue
		}
		written.Add(1)
		s.side.Produce(ctx, letter, func(_ *kgo.Record, err error) {
			defer written.Done()
			errs[n] = err
		})
	}
	written.Wait()
	var left []int
	var err error
	for n, i := range letters {
		if errs[n] != nil {
			left = append(left, i)
			err = errors.Join(err, s.notWritten(&all[i], errs[n]))
		}
	}
	return left, err
}

func (s *Source) notWritten(v *semel.Settlement, err error) error {
	what := "and will be tried again"
	switch {
	case errors.Is(err, kerr.MessageTooLarge):
		what = "because the topic does not take records of its size; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		what = "because the topic does not exist; create it"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		what = "because this user may not write to the topic; allow it WRITE and DESCRIBE"
	}
	o := v.Delivery.Message.Origin
	return fmt.Errorf("kafka: the dead letter of topic %s, partition %d, offset %d is not in topic %s yet, %s: %w",
		v.Delivery.Message.Topic, o.Partition, o.Offset, s.config.DeadLetters, what, err)
}

// deadLetter is the copy of a delivery, nil if it is settled meanwhile. It is
// made of the record as it was, not of the message it became.
func (s *Source) deadLetter(v *semel.Settlement) *kgo.Record {
	s.mu.Lock()
	raw := v.Delivery.Handle.(*record).raw
	s.mu.Unlock()
	if raw == nil {
		return nil
	}
	text := ""
	if v.Err != nil {
		text = v.Err.Error()
	}
	headers := slices.DeleteFunc(slices.Clone(raw.Headers), func(h kgo.RecordHeader) bool { return ours(h.Key) })
	for _, h := range []struct{ name, value string }{
		{HeaderReason, string(v.Reason)}, {HeaderError, shortened(text)}, {HeaderAttempts, strconv.Itoa(v.Attempts)},
		{HeaderConsumer, s.consumer}, {HeaderTopic, raw.Topic}, {HeaderPartition, strconv.Itoa(int(raw.Partition))},
		{HeaderOffset, strconv.FormatInt(raw.Offset, 10)}, {HeaderTime, raw.Timestamp.UTC().Format(time.RFC3339Nano)},
	} {
		headers = append(headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
	}
	return &kgo.Record{Topic: s.config.DeadLetters, Key: raw.Key, Value: raw.Value, Headers: headers}
}

// ours reports whether a header is one of those a dead letter gets. A record
// that was one before has them already; the newest count.
func ours(name string) bool {
	switch name {
	case HeaderReason, HeaderError, HeaderAttempts, HeaderConsumer, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTime:
		return true
	}
	return false
}

func shortened(text string) string {
	if len(text) > mostError {
		text = text[:mostError] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
