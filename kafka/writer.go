package kafka

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// writer is who writes dead letters: two clients of their own, made with the
// first of them, since they may have to be replaced: a client that was not
// given an id to produce with, because its user may write to no topic, does not
// ask again.
type writer struct {
	source *Source
	// batches writes in batches that the topic takes, as far as is known. What
	// is refused for its size goes to alone, which writes a record at a time.
	batches, alone *kgo.Client

	mu     sync.Mutex // guards the rest
	queue  []*copied
	active bool // alone has a record under way
}

// copied is a dead letter on its way to the brokers. answer is called once and
// must not wait.
type copied struct {
	record *kgo.Record
	answer func(error)
	// cuts is how often it was cut to a size that may be taken.
	cuts int
}

// largestBatch bounds what a client sends at once.
const largestBatch = mostRecord + 1<<20

// usualBatch is how large a batch a topic takes unless it is told otherwise;
// leastBatch is the smallest that the client can be told.
const (
	usualBatch = 1 << 20
	leastBatch = 1 << 10
)

// writerOptions: writes are idempotent and acknowledged by all replicas, which
// is the client's default, and nothing here can weaken it.
func (s *Source) writerOptions(batch int) []kgo.Opt {
	return append(s.common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
		kgo.MaxBufferedRecords(1<<30)) // the engine bounds what is unsettled
}

// askLetterSize finds out how large a batch the topic for dead letters takes.
// Where that is not answered, a batch that is refused is sent record by record.
func (s *Source) askLetterSize(ctx context.Context) {
	if s.config.DeadLetters == "" {
		return
	}
	size := usualBatch
	all, err := kadm.NewClient(s.side).DescribeTopicConfigs(ctx, s.config.DeadLetters)
	if err == nil && len(all) == 1 && all[0].Err == nil {
		for _, c := range all[0].Configs {
			if n, e := strconv.Atoi(c.MaybeValue()); e == nil && c.Key == "max.message.bytes" {
				size = n
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letterBatch = min(max(size, leastBatch), largestBatch)
}

// openWriter returns the writer of dead letters. Called with Source.mu held.
func (s *Source) openWriter() (*writer, error) {
	if s.closed {
		return nil, kgo.ErrClientClosed
	}
	if s.writer != nil {
		return s.writer, nil
	}
	batches, err := kgo.NewClient(s.writerOptions(s.letterBatch)...)
	if err != nil {
		return nil, err
	}
	alone, err := kgo.NewClient(append(s.writerOptions(largestBatch), kgo.ProducerLinger(0))...)
	if err != nil {
		batches.Close()
		return nil, err
	}
	s.writer = &writer{source: s, batches: batches, alone: alone}
	return s.writer, nil
}

// write sends a letter with others, or after a refusal alone.
func (w *writer) write(c *copied) {
	// A context of its own: a record that is cancelled on its way may be
	// written all the same.
	w.batches.Produce(w.source.life, c.record, func(_ *kgo.Record, err error) {
		w.wrote(w.batches, err)
		if errors.Is(err, kerr.MessageTooLarge) {
			w.writeAlone(c)
			return
		}
		c.answer(err)
	})
}

func (w *writer) writeAlone(c *copied) {
	w.mu.Lock()
	w.queue = append(w.queue, c)
	w.mu.Unlock()
	w.next()
}

// next sends the next letter of the queue if none is under way: what is under
// way together can become one batch.
func (w *writer) next() {
	w.mu.Lock()
	if w.active || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	c := w.queue[0]
	w.queue = w.queue[1:]
	w.active = true
	w.mu.Unlock()
	// A record of its own: the other client has written into the first.
	record := &kgo.Record{Topic: c.record.Topic, Key: c.record.Key, Value: c.record.Value, Headers: c.record.Headers}
	w.alone.Produce(w.source.life, record, func(_ *kgo.Record, err error) { w.wroteAlone(c, err) })
}

func (w *writer) wroteAlone(c *copied, err error) {
	w.wrote(w.alone, err)
	again := errors.Is(err, kerr.MessageTooLarge) && c.cut()
	if !again {
		if err == nil && c.cuts > 0 {
			w.source.tellCut(c)
		}
		c.answer(err)
	}
	w.mu.Lock()
	w.active = false
	if again {
		w.queue = append([]*copied{c}, w.queue...)
	}
	w.mu.Unlock()
	w.next()
}

// wrote looks after a client that has to be looked after.
func (w *writer) wrote(client *kgo.Client, err error) {
	s := w.source
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created anew
		client.PurgeTopicsFromProducing(s.config.DeadLetters)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.writer == w && !s.closed {
			s.writer = nil
			s.group.Go(w.close)
		}
	}
}

func (w *writer) close() {
	w.batches.Close()
	w.alone.Close()
}

// closeWriter is called when nothing runs any more.
func (s *Source) closeWriter() {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer != nil {
		writer.close()
	}
}
