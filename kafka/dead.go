package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// mostError is how much of an error's text a dead letter carries.
	mostError = 1 << 10
	// letterWait is how long a settlement waits for dead letters. What is not
	// confirmed by then is on its way all the same and waited for again; the
	// acks of other lanes must not wait for it.
	letterWait = 5 * time.Second
)

// prepareDeadLetters is source.Info.DeadLetters. Its error says that
// Config.DeadLetters is empty.
func (s *Source) prepareDeadLetters(consumer string) error {
	if s.config.DeadLetters == "" {
		return errors.New("kafka: there is no topic for dead letters; set Config.DeadLetters (in a policy: dead_letter: {topic: …} at the consumer), or end messages otherwise")
	}
	s.deadLetters.consumer = consumer
	return nil
}

// letter is a dead letter on its way. A delivery has one: a second try waits
// for the first, and does not write again what is written.
type letter struct {
	done chan struct{}
	err  error // read after done
}

func (l *letter) failed() bool {
	select {
	case <-l.done:
		return l.err != nil
	default:
		return false
	}
}

// write copies deliveries to the topic for dead letters and waits
// until all replicas have them. It returns those that could not be written, or
// are not yet.
func (d *deadLetters) write(ctx context.Context, all []source.Settlement, which []int) ([]int, error) {
	if len(which) == 0 {
		return nil, nil
	}
	if d.config.DeadLetters == "" {
		return which, fmt.Errorf("kafka: there is no topic for dead letters: %w", semel.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, letterWait)
	defer cancel()
	letters := make([]*letter, len(which))
	for n, i := range which {
		letters[n] = d.send(&all[i])
	}
	var left []int
	var failed complaints
	for n, i := range which {
		if err := letters[n].wait(ctx); err != nil {
			left = append(left, i)
			failed.add(&all[i], err)
		}
	}
	return left, failed.join(d.config.DeadLetters)
}

func (l *letter) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes the copy of a delivery, or finds the one under way; nil if the
// delivery is settled.
func (d *deadLetters) send(v *source.Settlement) *letter {
	raw, sent, begun := d.deliveries.letterOf(v.Delivery.Handle.(*record))
	if !begun {
		return sent
	}
	writer, err := d.open()
	answer := func(err error) {
		sent.err = err
		close(sent.done)
	}
	if err != nil {
		answer(err)
		return sent
	}
	// A context of its own: a record that is cancelled on its way may be
	// written all the same.
	o := &outgoing{ctx: d.life, record: d.deadLetter(raw, v), answer: answer}
	o.wasCut = func() { d.tellCut(o.record) }
	writer.write(o)
	return sent
}

// letterOf is the letter of a record that is not settled, and the record to be
// copied, if the letter is to be written.
func (d *deliveries) letterOf(r *record) (raw *kgo.Record, l *letter, begun bool) {
	d.lanes.with(func([]*lane) {
		if begun = r.raw != nil && (r.letter == nil || r.letter.failed()); begun {
			raw, r.letter = r.raw, &letter{done: make(chan struct{})}
		}
		l = r.letter
	})
	return raw, l, begun
}

// deadLetter is the copy of a record as it was, not of the message it became.
func (d *deadLetters) deadLetter(raw *kgo.Record, v *source.Settlement) *kgo.Record {
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
		{HeaderConsumer, d.consumer}, {HeaderTopic, raw.Topic}, {HeaderPartition, strconv.Itoa(int(raw.Partition))},
		{HeaderOffset, strconv.FormatInt(raw.Offset, 10)}, {HeaderTime, raw.Timestamp.UTC().Format(time.RFC3339Nano)},
	} {
		headers = append(headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
	}
	return &kgo.Record{Topic: d.config.DeadLetters, Key: raw.Key, Value: raw.Value, Headers: headers}
}

func shortened(text string) string {
	if len(text) > mostError {
		text = text[:mostError] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
