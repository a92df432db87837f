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

// writer is who writes records: two clients of their own, made with the
// first of them, since they may have to be replaced: a client that was not
// given an id to produce with, because its user may write to no topic, does not
// ask again.
type writer struct {
	// spent is called when the clients cannot write any more.
	spent func(*writer)
	// batches writes in batches that the topic takes, as far as is known. What
	// is refused for its size goes to alone, which writes a record at a time.
	batches, alone *kgo.Client

	mu     sync.Mutex // guards the rest
	queue  []*outgoing
	active bool // alone has a record under way
}

// outgoing is a record on its way to the brokers. answer is called once and
// must not wait.
type outgoing struct {
	// ctx: what was not sent when it ends is not sent any more.
	ctx    context.Context
	record *kgo.Record
	answer func(error)
	// wasCut is called where it was written after cuts; nil: it is never cut.
	wasCut func()
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

// newWriter makes the clients of a writer of the options that common returns for each.
// They are idempotent and acknowledged by all replicas, which is the client's default,
// and nothing here can weaken it.
func newWriter(common func() []kgo.Opt, batch int, spent func(*writer)) (*writer, error) {
	options := func(batch int) []kgo.Opt {
		return append(common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
			kgo.MaxBufferedRecords(1<<30)) // the engine bounds what is unsettled
	}
	batches, err := kgo.NewClient(options(batch)...)
	if err != nil {
		return nil, err
	}
	alone, err := kgo.NewClient(append(options(largestBatch), kgo.ProducerLinger(0))...)
	if err != nil {
		batches.Close()
		return nil, err
	}
	return &writer{spent: spent, batches: batches, alone: alone}, nil
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
	var err error
	d.writer, err = newWriter(d.brokers.common, d.batch, d.replace)
	return d.writer, err
}

// write sends a record with others, or after a refusal alone.
func (w *writer) write(o *outgoing) {
	w.batches.Produce(o.ctx, o.record, func(_ *kgo.Record, err error) {
		w.wrote(w.batches, o, err)
		if errors.Is(err, kerr.MessageTooLarge) {
			w.writeAlone(o)
			return
		}
		o.answer(err)
	})
}

func (w *writer) writeAlone(o *outgoing) {
	w.mu.Lock()
	over := w.takeOver()
	w.queue = append(w.queue, o)
	w.mu.Unlock()
	for _, one := range over {
		one.answer(one.ctx.Err())
	}
	w.next()
}

// takeOver takes what nobody wants any more out of the queue, so that it does not grow
// while a record before it is not answered. Called with mu held.
func (w *writer) takeOver() []*outgoing {
	var over, wanted []*outgoing
	for _, o := range w.queue {
		if o.ctx.Err() != nil {
			over = append(over, o)
		} else {
			wanted = append(wanted, o)
		}
	}
	w.queue = wanted
	return over
}

// next sends the next record of the queue if none is under way: what is under
// way together can become one batch.
func (w *writer) next() {
	w.mu.Lock()
	if w.active || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	o := w.queue[0]
	w.queue = w.queue[1:]
	w.active = true
	w.mu.Unlock()
	w.alone.Produce(o.ctx, unsent(o.record), func(_ *kgo.Record, err error) { w.wroteAlone(o, err) })
}

// unsent is a record of its own: a client has written into the other.
func unsent(r *kgo.Record) *kgo.Record {
	return &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
}

func (w *writer) wroteAlone(o *outgoing, err error) {
	w.wrote(w.alone, o, err)
	again := errors.Is(err, kerr.MessageTooLarge) && o.wasCut != nil && o.cut()
	if !again {
		if err == nil && o.cuts > 0 {
			o.wasCut()
		}
		o.answer(err)
	}
	w.mu.Lock()
	w.active = false
	if again {
		w.queue = append([]*outgoing{o}, w.queue...)
	}
	w.mu.Unlock()
	w.next()
}

// wrote looks after a client that has to be looked after.
func (w *writer) wrote(client *kgo.Client, o *outgoing, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created anew
		client.PurgeTopicsFromProducing(o.record.Topic)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		w.spent(w)
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
