// Package producer writes records to topics in batches, and records that are too large for a batch alone.
package producer

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer writes records through two clients of its own. They may have to be replaced: a client that got no producer
// id, because its user may write to no topic, does not ask again.
type Producer struct {
	// spent is called when the clients can no longer write.
	spent func(*Producer)
	// Batches writes batches of the size that the topic accepts, as far as that is known. Records that are refused
	// because of the batch size go to Alone, which writes one record at a time.
	Batches, Alone *kgo.Client

	mu     sync.Mutex // guards the rest
	queue  []*Record
	active bool // Alone has a record in progress
}

// Record is a record to be written.
type Record struct {
	// Ctx: if it ends before the record is sent, the record is not sent.
	Ctx    context.Context
	Record *kgo.Record
	// Answer is called once and must not block.
	Answer func(error)
	// Cut returns a smaller record if the topic does not accept the size, or nil if it cannot be cut further; cuts is
	// the number of earlier cuts. If Cut is nil the record is never cut.
	Cut func(r *kgo.Record, cuts int) *kgo.Record
	// WasCut is called if the record was written after it was cut. Required with Cut.
	WasCut func(*kgo.Record)
	cuts   int
}

const (
	// MostRecord is the largest record, in bytes, that the client reads in one response.
	MostRecord = 90 << 20
	// LargestBatch limits the size of one request of a client.
	LargestBatch = MostRecord + 1<<20
	// UsualBatch is the batch size that a topic accepts unless configured otherwise; LeastBatch is the smallest size
	// that the client can be set to.
	UsualBatch = 1 << 20
	LeastBatch = 1 << 10
)

// New creates the clients of a producer with the options that common returns for each. They are idempotent and need
// acknowledgement by all replicas, which is the client's default and is not weakened here.
func New(common func() []kgo.Opt, batch int, spent func(*Producer)) (*Producer, error) {
	options := func(batch int) []kgo.Opt {
		return append(common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
			kgo.MaxBufferedRecords(1<<30)) // the engine limits unsettled messages
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

// Write sends a record with others, or, after a refusal, alone.
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

// takeOver removes the records whose Ctx has ended from the queue, and returns them. Otherwise the queue would grow
// while the current record is not answered. The caller holds mu.
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

// next sends the next record of the queue if none is in progress: records in progress at the same time can become one
// batch.
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

// Unsent returns a copy of a record without the fields that a client has set.
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

// cut makes the record smaller, and reports whether that was possible.
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

// wrote handles errors after which a client can no longer write as before.
func (w *Producer) wrote(client *kgo.Client, o *Record, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created again
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
