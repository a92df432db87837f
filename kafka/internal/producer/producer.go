// Package producer writes records to topics in batches. Records that are too large for a batch with other records are
// written one at a time.
package producer

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer writes records through two clients of its own. A Producer may have to be replaced, because a client whose
// user may write to no topic gets no producer id, and does not request the id again later.
type Producer struct {
	// onUnusable is called when the clients can no longer write.
	onUnusable func(*Producer)
	// The client Batches writes batches of the size that the topic accepts, if that size is known. If a broker refuses
	// a batch because of its size, the client Alone writes the records of the batch, one record at a time.
	Batches, Alone *kgo.Client

	mu     sync.Mutex // guards the fields below
	queue  []*Record
	active bool // true while the client Alone writes a record
}

// Record is a record to be written, with its callbacks.
type Record struct {
	// Ctx is the context of the write: if Ctx ends before the record is sent, the record is not sent.
	Ctx    context.Context
	Record *kgo.Record
	// Answer is called once, with the outcome. Answer must not block.
	Answer func(error)
	// Cut is called if the topic does not accept the size of the record. Cut returns a smaller record, or nil if the
	// record cannot be smaller; the parameter cuts is the number of earlier calls. If Cut is nil, the record is never
	// truncated.
	Cut func(r *kgo.Record, cuts int) *kgo.Record
	// WasCut is called after a truncated record was written. WasCut is required with Cut.
	WasCut func(*kgo.Record)
	cuts   int
}

const (
	// MostRecord is the size of the largest record, in bytes, that the client can read in one response.
	MostRecord = 90 << 20
	// LargestBatch is the largest size of one request of a client.
	LargestBatch = MostRecord + 1<<20
	// UsualBatch is the batch size that a topic accepts by default. LeastBatch is the smallest batch size that the
	// client supports.
	UsualBatch = 1 << 20
	LeastBatch = 1 << 10
)

// New creates the two clients of a producer. The function common returns the options of each client. Both clients are
// idempotent and wait for the confirmation of all replicas, which is the default of franz-go.
func New(common func() []kgo.Opt, batch int, spent func(*Producer)) (*Producer, error) {
	options := func(batch int) []kgo.Opt {
		return append(common(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(int32(batch)),
			kgo.MaxBufferedRecords(1<<30)) // the consumer limits the number of unacked messages
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
	return &Producer{onUnusable: spent, Batches: batches, Alone: alone}, nil
}

// Write writes a record in a batch. If the brokers refuse the batch because of its size, Write writes the
// record alone.
func (w *Producer) Write(o *Record) {
	w.Batches.Produce(o.Ctx, o.Record, func(_ *kgo.Record, err error) {
		w.handleResult(w.Batches, o, err)
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
	w.writeNext()
}

// takeOver removes the records whose Ctx has ended from the queue, and returns these records. Without takeOver, the
// queue would grow while the current record has no answer. The caller holds mu.
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

// writeNext writes the next record of the queue if no record is in progress. Only one record is in progress, because
// the client could put two records into one batch.
func (w *Producer) writeNext() {
	w.mu.Lock()
	if w.active || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	o := w.queue[0]
	w.queue = w.queue[1:]
	w.active = true
	w.mu.Unlock()
	w.Alone.Produce(o.Ctx, Unsent(o.Record), func(_ *kgo.Record, err error) { w.handleAloneResult(o, err) })
}

// Unsent returns a copy of a record without the fields that a client has set.
func Unsent(r *kgo.Record) *kgo.Record {
	return &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
}

func (w *Producer) handleAloneResult(o *Record, err error) {
	w.handleResult(w.Alone, o, err)
	again := errors.Is(err, kerr.MessageTooLarge) && o.shrink()
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
	w.writeNext()
}

// shrink makes the record smaller, and reports whether the record could be smaller.
func (o *Record) shrink() bool {
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

// handleResult handles the errors after which a client can no longer write, or after which a record must be written
// alone.
func (w *Producer) handleResult(client *kgo.Client, o *Record, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID): // the topic was deleted and created again, with another id
		client.PurgeTopicsFromProducing(o.Record.Topic)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		w.onUnusable(w)
	}
}

// Close closes the clients. A nil Producer has no clients.
func (w *Producer) Close() {
	if w != nil {
		w.Batches.Close()
		w.Alone.Close()
	}
}
