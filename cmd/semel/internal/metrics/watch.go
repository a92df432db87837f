package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/measure"
)

// Watch counts batches, and messages that were parked, discarded or dead-lettered. Watch implements
// semel.Observer and measure.Meter for the consumers that are passed to newWatch.
type Watch struct {
	counts map[string]*consumerCounts // the counts by consumer; constant after newWatch
}

type consumerCounts struct {
	ends                                    [4]atomic.Int64 // number of batches by measure.End
	messages, marking, handling, committing *tally
	contended, backstops, budget            atomic.Int64
	paused                                  atomic.Bool
	last                                    lastError

	mutex          sync.Mutex
	unapplied      map[measure.Aside]int64             // guarded by mutex
	zeroMetrics    map[measure.Aside]prometheus.Metric // metrics with value 0, by outcome and reason; guarded by mutex
	failedAttempts map[string]int64                    // number of failed attempts, by the part that failed; guarded by mutex
	serial         measure.Stopwatch                   // guarded by mutex
}

func newWatch(consumers []string) *Watch {
	w := &Watch{counts: map[string]*consumerCounts{}}
	for _, name := range consumers {
		w.counts[name] = &consumerCounts{
			messages: newTally("semel_batch_messages", 1), marking: newTally("semel_batch_mark_seconds", nanosecond),
			handling: newTally("semel_batch_handle_seconds", nanosecond), committing: newTally("semel_batch_commit_seconds", nanosecond),
			unapplied: map[measure.Aside]int64{}, zeroMetrics: map[measure.Aside]prometheus.Metric{}, failedAttempts: map[string]int64{},
		}
		for _, a := range measure.Asides() {
			w.counts[name].unapplied[a] = 0
		}
		for _, part := range measure.Parts() {
			w.counts[name].failedAttempts[part] = 0
		}
	}
	return w
}

const nanosecond = 1e-9

// consumer returns the counts of an event or batch. The events of a generation count for its consumer.
func (w *Watch) consumer(name string) *consumerCounts {
	if of, known := w.counts[name]; known {
		return of
	}
	public, _ := admin.GenerationOf(name)
	return w.counts[public]
}

// Measure implements measure.Meter.
func (w *Watch) Measure(b measure.Batch) {
	of := w.consumer(b.Consumer)
	if of == nil {
		return
	}
	if int(b.End) < len(of.ends) {
		of.ends[b.End].Add(1)
	}
	of.messages.add(int64(b.Messages))
	of.marking.add(int64(b.Marking))
	if b.Handling > 0 {
		of.handling.add(int64(b.Handling))
	}
	if b.Committing > 0 {
		of.committing.add(int64(b.Committing))
	}
}

// Observe implements semel.Observer.
func (w *Watch) Observe(e semel.Event) {
	switch e.Kind {
	case eventkind.Duplicate, eventkind.Committed, eventkind.Skipped: // the consumer itself counts these events
		return
	}
	of := w.consumer(e.Consumer)
	if of == nil {
		return
	}
	of.last.record(e, time.Now())
	switch e.Kind {
	case eventkind.Contended:
		of.contended.Add(1)
	case eventkind.Backstop:
		of.backstops.Add(int64(e.Messages))
	case eventkind.RetriesWait:
		of.budget.Add(1)
	case eventkind.Control:
		of.paused.Store(e.Reason == semel.ReasonPaused)
	case semel.EventNotReady:
		of.countFailure(string(e.Reason))
	case eventkind.Serial:
		of.setSerial(true, time.Now())
	case eventkind.Parallel:
		of.setSerial(false, time.Now())
	default:
		if a, ended := measure.AsideOf(e); ended {
			of.mutex.Lock()
			of.unapplied[a] += int64(e.Messages)
			of.mutex.Unlock()
		}
	}
}

func (of *consumerCounts) setSerial(on bool, now time.Time) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	of.serial.Turn(on, now)
}

// serialDuration returns how long batches have run one at a time, and whether batches run one at a
// time now.
func (of *consumerCounts) serialDuration(now time.Time) (time.Duration, bool) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	return of.serial.Read(now)
}

// countFailure counts a failed attempt, by the part that failed. The method ignores parts that the
// documentation does not list.
func (of *consumerCounts) countFailure(part string) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	if _, known := of.failedAttempts[part]; known {
		of.failedAttempts[part]++
	}
}

// eachFailure calls the function each with the count of every part.
func (of *consumerCounts) eachFailure(each func(part string, n int64)) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	for part, n := range of.failedAttempts {
		each(part, n)
	}
}

// eachUnapplied calls the function each with each number of unapplied messages: one number for each outcome and reason.
func (of *consumerCounts) eachUnapplied(each func(measure.Aside, int64)) {
	of.mutex.Lock()
	defer of.mutex.Unlock()
	for a, n := range of.unapplied {
		each(a, n)
	}
}
