// Package producer writes records to topics in batches, and alone what is too large for a batch.
package producer

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer writes records by two clients of its own. They may have to be replaced: a client
// that was not given an id to produce with, because its user may write to no topic, does not
// ask again.
type Producer struct {
	// spent is called when the clients cannot write any more.
	spent func(*Producer)
	// Batches writes in batches that the topic takes, as far as is known. What
	// is refused for its size goes to Alone, which writes a record at a time.
	Batches, Alone *kgo.Client

	mu     sync.Mutex // guards the rest
	queue  []*Record
	active bool // Alone has a record under way
}

// Record is a record on its way to the brokers.
type Record struct {
	// Ctx: if it ends before the record is sent, the record is not sent.
	Ctx    context.Context
	Record *kgo.Record
	// Answer is called once and must not wait.
	Answer func(error)
	// Cut returns a smaller record where the topic takes none of its size, nil if there is
	// none; cuts is how often that was done. Without it the record is never cut.
	Cut func(r *kgo.Record, cuts int) *kgo.Record
	// WasCut is called where the record was written after cuts. Required with Cut.
	WasCut func(*kgo.Record)
	cuts   int
}

const (
	// MostRecord is the largest record in bytes that the client reads in one response.
	MostRecord = 90 << 20
	// LargestBatch bounds what a client sends at once.
	LargestBatch = MostRecord + 1<<20
	// UsualBatch is how large a batch a topic takes unless it is told otherwise;
	// LeastBatch is the smallest that the client can be told.
	UsualBatch = 1 << 20
	LeastBatch = 1 << 10
)

// New makes the clients of a producer of the options that common returns for each. They are
// idempotent and acknowledged by all replicas, which is the client's default,
// and nothing here can weaken it.
func New(common func() []kgo.Opt, batch int, spent func(*Producer)) (*Producer, error) {
	options := func(batch int) []kgo.Opt {
		return append(common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
			kgo.MaxBufferedRecords(1<<30)) // the engine bounds what is unsettled
	}
	batches, err := kgo.NewClient(options(batch)...)
	if err != nil {
		return nil, err
	}
	alone, err := kgo.NewClient(append(options(LargestBatch), kgo.ProducerLinger(0))...)
	if err != nil {
		batches.Close()
		return nil, err
	}
	return &Producer{spent: spent, Batches: batches, Alone: alone}, nil
}

// Write sends a record with others, or after a refusal alone.
func (w *Producer) Write(o *Record) {
	w.Batches.Produce(o.Ctx, o.Record, func(_ *kgo.Record, err error) {
		w.wrote(w.Batches, o, err)
		if errors.Is(err, kerr.MessageTooLarge) {
			w.writeAlone(o)
			return
		}
		o.Answer(err)
	})
}

func (w *Producer) writeAlone(o *Record) {
	w.mu.Lock()
	over := w.takeOver()
	w.queue = append(w.queue, o)
	w.mu.Unlock()
	for _, one := range over {
		one.Answer(one.Ctx.Err())
	}
	w.next()
}

// takeOver removes the records whose Ctx has ended from the queue, and returns them: the queue
// would else grow while the record before them is not answered. Called with mu held.
func (w *Producer) takeOver() []*Record {
	var over, wanted []*Record
	for _, o := range w.queue {
		if o.Ctx.Err() != nil {
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
func (w *Producer) next() {
	w.mu.Lock()
	if w.active || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	o := w.queue[0]
	w.queue = w.queue[1:]
	w.active = true
	w.mu.Unlock()
	w.Alone.Produce(o.Ctx, Unsent(o.Record), func(_ *kgo.Record, err error) { w.wroteAlone(o, err) })
}

// Unsent returns a copy of a record that no client has written into.
func Unsent(r *kgo.Record) *kgo.Record {
	return &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
}

func (w *Producer) wroteAlone(o *Record, err error) {
	w.wrote(w.Alone, o, err)
	again := errors.Is(err, kerr.MessageTooLarge) && o.cut()
	if !again {
		if err == nil && o.cuts > 0 {
			o.WasCut(o.Record)
		}
		o.Answer(err)
	}
	w.mu.Lock()
	w.active = false
	if again {
		w.queue = append([]*Record{o}, w.queue...)
	}
	w.mu.Unlock()
	w.next()
}

// cut makes the record smaller, and reports whether it could.
func (o *Record) cut() bool {
	if o.Cut == nil {
		return false
	}
	smaller := o.Cut(o.Record, o.cuts)
	if smaller == nil {
		return false
	}
	o.Record = smaller
	o.cuts++
	return true
}

// wrote handles the errors after which a client cannot write as before.
func (w *Producer) wrote(client *kgo.Client, o *Record, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created anew
		client.PurgeTopicsFromProducing(o.Record.Topic)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		w.spent(w)
	}
}

// Close closes the clients. A nil producer has none.
func (w *Producer) Close() {
	if w != nil {
		w.Batches.Close()
		w.Alone.Close()
	}
}
