package consumer_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/bodies"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/sourcetest"
	"github.com/semel-go/semel/store"
)

// benchBatch is the number of messages that share a transaction in the benchmarks.
const benchBatch = 500

// benchBody has 200 bytes of JSON.
const benchBody = `{"payment":"5f0c9a52-7c2e-4f0a-9d53-1d0f3a6f2f11","account":"DE89370400440532013000","amount":"129.95","currency":"EUR","purpose":"invoice 2026-001842","created":"2026-01-07T09:31:07Z","version":3,"b":1}`

// benchMessages returns n messages with different identities. The bodies of the messages are the elements of the slice
// of, repeated.
func benchMessages(n int, of ...[]byte) []*semel.Message {
	all := make([]semel.Message, n)
	out := make([]*semel.Message, n)
	for i := range all {
		all[i] = semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "payment-%012d", i)}}, Body: of[i%len(of)], Origin: semel.Origin{Partition: -1, Offset: -1}}
		out[i] = &all[i]
	}
	return out
}

// touch is the effect of the benchmarks: it increments a counter of the message's account.
func touch(_ context.Context, tx *memstore.Tx, _ *semel.Message) error { return tx.Add("account", 1) }

// perMessage runs the function f, which handles n messages, and reports time and allocations per message.
func perMessage(b *testing.B, n int, f func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	b.ResetTimer()
	f()
	b.StopTimer()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/message")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/message")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n), "B/message")
}

// BenchmarkNothing measures the same store and handler without the engine: the benchmark computes identities
// itself and uses batches of 500 and one goroutine. The difference between BenchmarkNothing and
// BenchmarkEngine is the cost of the engine.
func BenchmarkNothing(b *testing.B) {
	store := memstore.New()
	scope, err := store.Scope(b.Context(), "billing", "", 0)
	if err != nil {
		b.Fatal(err)
	}
	messages := benchMessages(b.N, []byte(benchBody))
	perMessage(b, b.N, func() {
		for len(messages) > 0 {
			n := min(benchBatch, len(messages))
			byHand(b, store, scope, messages[:n])
			messages = messages[n:]
		}
	})
}

func byHand(b *testing.B, st *memstore.Store, scope int64, messages []*semel.Message) {
	marks := make([]store.Mark, len(messages))
	for i, m := range messages {
		id, _ := m.Headers.Get("id")
		marks[i] = store.Mark{Scope: scope, ID: id, As: store.Applied}
	}
	batch, _, err := st.Begin(b.Context(), store.TxOptions{}, marks)
	if err != nil {
		b.Fatal(err)
	}
	for i, m := range messages {
		if err := touch(b.Context(), batch.Tx(i), m); err != nil {
			b.Fatal(err)
		}
	}
	if r := batch.Commit(b.Context(), store.Ending{}); r.Outcome != store.Committed {
		b.Fatal(r.Err)
	}
}

// BenchmarkEngine measures a run over messages of a broker in memory. All messages are new, and there is one
// lane for each worker.
func BenchmarkEngine(b *testing.B) {
	for _, f := range []struct {
		name string
		by   identity.Fingerprinter
	}{{"none", identity.FingerprintNone()}, {"body", identity.FingerprintBody()}} {
		for _, workers := range []int{1, 4} {
			b.Run(fmt.Sprintf("fingerprint=%s/workers=%d", f.name, workers), func(b *testing.B) { benchEngine(b, f.by, workers, []byte(benchBody)) })
		}
	}
}

// BenchmarkEngineBodies is BenchmarkEngine with longer bodies, whose fingerprints are computed.
func BenchmarkEngineBodies(b *testing.B) {
	sets, missing, err := bodies.Sets(os.Getenv(bodies.Variable))
	if err != nil {
		b.Fatal(err)
	}
	for _, set := range sets {
		for _, workers := range []int{1, 4} {
			b.Run(fmt.Sprintf("body=%s/workers=%d", set.Name, workers), func(b *testing.B) {
				b.SetBytes(set.Mean())
				benchEngine(b, identity.FingerprintBody(), workers, set.All...)
			})
		}
	}
	if missing != nil {
		b.Run("body=webhooks-missing", func(b *testing.B) { b.Log(missing) })
	}
}

// BenchmarkEngineKeys measures a run over messages of 10,000 keys in one lane: without order, in order of
// each key, and with OnParkedBlock.
func BenchmarkEngineKeys(b *testing.B) {
	for _, kept := range []struct {
		name     string
		lanes    consumer.LaneMode
		onParked consumer.OnParked
	}{{"none", consumer.LanesNone, consumer.OnParkedSkip}, {"skip", consumer.LanesKey, consumer.OnParkedSkip}, {"block", consumer.LanesKey, consumer.OnParkedBlock}} {
		for _, workers := range []int{1, 4} {
			b.Run(fmt.Sprintf("keys=%s/workers=%d", kept.name, workers), func(b *testing.B) {
				messages := benchMessages(b.N, []byte(benchBody))
				for i, m := range messages {
					m.Key = fmt.Appendf(nil, "account-%05d", i*7919%10_000)
				}
				benchRun(b, messages, 1, func(c *consumer.Config) { c.Workers, c.Lanes, c.OnParked = workers, kept.lanes, kept.onParked })
			})
		}
	}
}

// total is a meter that adds up its measurements, as the meter of a metrics library does.
type total struct{ batches, messages, took atomic.Int64 }

func (*total) Observe(semel.Event) {}

func (t *total) Measure(b measure.Batch) {
	t.batches.Add(1)
	t.messages.Add(int64(b.Messages))
	t.took.Add(int64(b.Marking + b.Handling + b.Committing))
}

// BenchmarkEngineMeter is BenchmarkEngine with one worker, with and without a meter, in batches of 500
// messages and of one message.
func BenchmarkEngineMeter(b *testing.B) {
	for _, most := range []int{benchBatch, 1} {
		for _, metered := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/metered=%t", most, metered), func(b *testing.B) {
				benchRun(b, benchMessages(b.N, []byte(benchBody)), 1, func(c *consumer.Config) {
					if c.Workers, c.Batch.MaxSize = 1, most; metered {
						c.Observers = []semel.Observer{&total{}}
					}
				})
			})
		}
	}
}

func benchEngine(b *testing.B, by identity.Fingerprinter, workers int, of ...[]byte) {
	benchRun(b, benchMessages(b.N, of...), workers, func(c *consumer.Config) { c.Workers, c.Fingerprint = workers, by })
}

func benchRun(b *testing.B, messages []*semel.Message, lanes int, policy func(*consumer.Config)) {
	source := sourcetest.NewMemory(lanes)
	for i, m := range messages {
		if err := source.Publish(i%lanes, m); err != nil {
			b.Fatal(err)
		}
	}
	if err := source.End(); err != nil {
		b.Fatal(err)
	}
	c := config(source)
	c.Batch.MaxSize = benchBatch
	policy(&c)
	running, err := consumer.New(memstore.New(), touch, c)
	if err != nil {
		b.Fatal(err)
	}
	perMessage(b, b.N, func() { err = running.Run(b.Context()) })
	if counts := running.Counts(); err != nil || counts.Applied != int64(b.N) {
		b.Fatalf("%v, %+v of %d", err, counts, b.N)
	}
}
