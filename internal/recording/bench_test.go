package recording_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// mill passes batches of 500 deliveries to a machine, as in a consumer that is always busy, and measures the
// cost of recording.
type mill struct {
	machine  *machine.Machine
	tape     *recording.Tape
	now      machine.Time
	messages int
	mallocs  uint64
	spent    time.Duration

	recorder *recording.Recorder
	broken   *recording.Broken
	// The function spoil changes actions. The field failing is true if the handlers fail. The field short is true if
	// the handlers have not enough time for all messages.
	spoil          func(machine.Event, machine.Action) machine.Action
	failing, short bool
}

func newMill(size int) *mill { return newMillOf(recording.New(size, false)) }

func newMillOf(r *recording.Recorder) *mill {
	c := machine.Config{
		Lanes: machine.Partition, Workers: 1, Most: 500, BatchTime: time.Second, MaxInMemoryWait: time.Second, MaxMessages: 2000, MaxBytes: 1 << 30, Drain: time.Second,
		MaxAttempts: 3, InitialDelay: time.Second, MaxDelay: time.Second, RetryCost: time.Millisecond, RetryShare: time.Millisecond, RetrySaved: time.Second,
		TrialAfter: 10, BackoffFirst: time.Millisecond, BackoffMost: time.Second, Seed: 1,
	}
	m := &mill{machine: machine.New(c), recorder: r}
	m.tape = r.Begin("orders", m.machine, c, time.Unix(0, 0))
	m.step(machine.Given{Lane: source.Lane{ID: "orders/0", Epoch: 1}})
	return m
}

// step runs a step of the machine and measures only the recording of the step.
func (m *mill) step(e machine.Event) []machine.Action {
	var before, middle, after runtime.MemStats
	m.now += time.Microsecond
	runtime.ReadMemStats(&before)
	began := time.Now()
	m.tape.Event(e, m.now)
	m.spent += time.Since(began)
	runtime.ReadMemStats(&middle)
	m.mallocs += middle.Mallocs - before.Mallocs
	actions := m.machine.Step(e, m.now)
	for i, a := range actions {
		if m.spoil != nil {
			actions[i] = m.spoil(e, a)
		}
	}
	runtime.ReadMemStats(&before)
	began = time.Now()
	if b := m.tape.Actions(actions); b != nil {
		m.broken = b
	}
	m.spent += time.Since(began)
	runtime.ReadMemStats(&after)
	m.mallocs += after.Mallocs - before.Mallocs
	return append([]machine.Action(nil), actions...)
}

// batch delivers 500 messages and processes all of them.
func (m *mill) batch() {
	var items []*machine.Item
	for range 500 {
		m.messages++
		items = append(items, &machine.Item{
			Lane: source.Lane{ID: "orders/0", Epoch: 1}, Source: "shop", Identity: fmt.Sprintf("order-%012d", m.messages), Print: semel.Fingerprint{Version: 1, Sum: [16]byte{1}},
			Before: -1, Route: uint64(m.messages), Size: 400,
		})
	}
	m.carry(m.step(machine.Fetched{Items: items}))
}

func (m *mill) carry(actions []machine.Action) {
	for _, a := range actions {
		if m.broken != nil {
			return
		}
		switch a := a.(type) {
		case machine.Begin:
			verdicts := make([]store.Verdict, len(a.Flight.Entries))
			for i := range verdicts {
				verdicts[i].Kind = store.Fresh
			}
			m.carry(m.step(machine.Marked{Flight: a.Flight, Verdicts: verdicts}))
		case machine.Run:
			ran := machine.Ran{Flight: a.Flight, Done: len(a.Fresh), Failed: m.failing}
			if m.short {
				ran.Done--
			}
			if m.failing {
				ran.Done, ran.Class = 0, store.ClassRetry
			}
			m.carry(m.step(ran))
		case machine.Commit:
			m.carry(m.step(machine.Ended{Flight: a.Flight, Outcome: store.Committed, Culprit: -1}))
		case *machine.Settle:
			m.carry(m.step(machine.Settled{Settle: a}))
		}
	}
}

// BenchmarkRecording measures the cost of recording per message. Before the measurement, the ring has been overwritten
// many times.
func BenchmarkRecording(b *testing.B) {
	m := newMill(8 << 20)
	for range 400 {
		m.batch()
	}
	m.mallocs, m.spent, m.messages = 0, 0, 0
	b.ResetTimer()
	for m.messages < b.N {
		m.batch()
	}
	b.ReportMetric(float64(m.spent.Nanoseconds())/float64(m.messages), "ns/message")
	b.ReportMetric(float64(m.mallocs)/float64(m.messages), "allocs/message")
}

func TestRecordingAllocatesNothingForAMessage(t *testing.T) {
	m := newMill(8 << 20)
	for range 200 {
		m.batch()
	}
	m.mallocs, m.messages = 0, 0
	for range 200 {
		m.batch()
	}
	if per := float64(m.mallocs) / float64(m.messages); per > 0.01 {
		t.Errorf("%.4f allocations a message", per)
	}
}
