package kafka

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// deadLetters are the dead letters that are written.
type deadLetters struct {
	config     *Config
	brokers    *brokers
	member     *member
	deliveries *deliveries
	// life ends when nothing is written any more; what is closed until then runs
	// in background.
	life       context.Context
	background *worker.Group
	consumer   string // named by DeadLetters

	mu     sync.Mutex // guards the rest; nothing is waited for under it
	writer *writer    // nil before the first letter
	// batch is how large a batch of letters may be.
	batch int
}

// writer is who writes dead letters: two clients of their own, made with the
// first of them, since they may have to be replaced: a client that was not
// given an id to produce with, because its user may write to no topic, does not
// ask again.
type writer struct {
	deadLetters *deadLetters
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

// options are of a client that writes: idempotent and acknowledged by all replicas, which
// is the client's default, and nothing here can weaken it.
func (d *deadLetters) options(batch int) []kgo.Opt {
	return append(d.brokers.common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
		kgo.MaxBufferedRecords(1<<30)) // the engine bounds what is unsettled
}

// askSize finds out how large a batch the topic for dead letters takes.
// Where that is not answered, a batch that is refused is sent record by record.
func (d *deadLetters) askSize(ctx context.Context) {
	if d.config.DeadLetters == "" {
		return
	}
	size := usualBatch
	all, err := kadm.NewClient(d.brokers.client()).DescribeTopicConfigs(ctx, d.config.DeadLetters)
	if err == nil && len(all) == 1 && all[0].Err == nil {
		for _, c := range all[0].Configs {
			if n, e := strconv.Atoi(c.MaybeValue()); e == nil && c.Key == "max.message.bytes" {
				size = n
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batch = min(max(size, leastBatch), largestBatch)
}

// open returns the writer of dead letters.
func (d *deadLetters) open() (*writer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.member.isClosed() {
		return nil, kgo.ErrClientClosed
	}
	if d.writer != nil {
		return d.writer, nil
	}
	batches, err := kgo.NewClient(d.options(d.batch)...)
	if err != nil {
		return nil, err
	}
	alone, err := kgo.NewClient(append(d.options(largestBatch), kgo.ProducerLinger(0))...)
	if err != nil {
		batches.Close()
		return nil, err
	}
	d.writer = &writer{deadLetters: d, batches: batches, alone: alone}
	return d.writer, nil
}

// write sends a letter with others, or after a refusal alone.
func (w *writer) write(c *copied) {
	// A context of its own: a record that is cancelled on its way may be
	// written all the same.
	w.batches.Produce(w.deadLetters.life, c.record, func(_ *kgo.Record, err error) {
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
	w.alone.Produce(w.deadLetters.life, record, func(_ *kgo.Record, err error) { w.wroteAlone(c, err) })
}

func (w *writer) wroteAlone(c *copied, err error) {
	w.wrote(w.alone, err)
	again := errors.Is(err, kerr.MessageTooLarge) && c.cut()
	if !again {
		if err == nil && c.cuts > 0 {
			w.deadLetters.tellCut(c)
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
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created anew
		client.PurgeTopicsFromProducing(w.deadLetters.config.DeadLetters)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		w.deadLetters.replace(w)
	}
}

func (w *writer) close() {
	w.batches.Close()
	w.alone.Close()
}

// replace lets the next letter have another writer than this one.
func (d *deadLetters) replace(w *writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writer == w && !d.member.isClosed() {
		d.writer = nil
		d.background.Go(w.close)
	}
}

// close is called when nothing runs any more.
func (d *deadLetters) close() {
	d.mu.Lock()
	writer := d.writer
	d.mu.Unlock()
	if writer != nil {
		writer.close()
	}
}
