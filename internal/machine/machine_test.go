package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// world simulates a store that remembers identities. A world carries out a machine's actions immediately, with the
// test's handler.
type world struct {
	t       *testing.T
	m       *Machine
	now     Time
	events  []Event
	marks   int
	commits int
	applied []string
	markers map[string]As
	handler func(it *Item) *Failure
	opens   func(f *Flight) store.Class // result of Begin; if nil, Begin always succeeds
	busy    func(f *Flight) bool        // whether a marker waits for another process; if nil, never
	refuses func(a Commit) *Ended       // result of a rejected Commit; if nil, no Commit is rejected
	unknown func(a Commit) bool         // whether the outcome of a commit that failed is unknown
	whole   bool                        // one handler runs for the whole batch
	reports []Report
	input   [][]*Item
	settled map[*Item]source.End
	done    *Done
}

func testConfig() Config {
	return Config{Workers: 1, Most: 500, BatchTime: time.Second, MaxInMemoryWait: 10 * time.Second, MaxMessages: 10000, MaxBytes: 1 << 30,
		Drain: time.Second, MaxAttempts: 3, InitialDelay: time.Second, MaxDelay: 5 * time.Second, BackoffFirst: 10 * time.Millisecond, BackoffMost: time.Second, TrialAfter: 1 << 30, Seed: 1}
}

func newWorld(t *testing.T, c Config) *world {
	return &world{t: t, m: New(c), markers: map[string]As{}, settled: map[*Item]source.End{}, handler: func(*Item) *Failure { return nil }}
}

func (w *world) run(steps int) {
	w.events = append(w.events, Given{Lane: source.Lane{ID: "a", Epoch: 1}}, Given{source.Lane{ID: "b", Epoch: 1}})
	var wake Time
	for ; steps > 0 && w.done == nil; steps-- {
		var e Event = Timer{}
		if len(w.events) > 0 {
			e, w.events = w.events[0], w.events[1:]
		} else {
			if wake <= w.now {
				w.t.Fatalf("nothing to do at %v and no wake", w.now)
			}
			w.now = wake
		}
		for _, a := range w.m.Step(e, w.now) {
			if k, ok := a.(Wake); ok {
				wake = k.At
			}
			w.carryOut(a)
		}
	}
	if w.done == nil {
		w.t.Fatal("the machine did not end")
	}
}

func (w *world) carryOut(a Action) {
	switch a := a.(type) {
	case Fetch:
		e := Fetched{End: len(w.input) <= 1}
		if len(w.input) > 0 {
			e.Items, w.input = w.input[0], w.input[1:]
		}
		w.events = append(w.events, e)
	case Begin:
		if w.busy != nil && w.busy(a.Flight) {
			w.events = append(w.events, Marked{Flight: a.Flight, Class: store.ClassContended, CopyBusy: true, Err: errTest})
			return
		}
		if w.opens != nil {
			if class := w.opens(a.Flight); class != store.ClassNone {
				w.events = append(w.events, Marked{Flight: a.Flight, Class: class, Err: errTest})
				return
			}
		}
		v := make([]store.Verdict, len(a.Flight.Entries))
		for i, en := range a.Flight.Entries {
			w.marks++
			v[i] = store.Verdict{Kind: store.Fresh}
			if as, there := w.markers[en.Item.Identity]; there {
				v[i] = store.Verdict{Kind: store.Seen, Was: store.Applied}
				if as == AsParked {
					v[i] = store.Verdict{Kind: store.Seen, Was: store.Parked}
				}
			}
		}
		w.events = append(w.events, Marked{Flight: a.Flight, Verdicts: v})
	case Run:
		e := Ran{Flight: a.Flight}
		for _, i := range a.Fresh {
			if f := w.handler(a.Flight.Entries[i].Item); f != nil {
				e.Failed, e.Whole, e.Failure = true, w.whole, *f
				break
			}
			e.Done++
		}
		w.events = append(w.events, e)
	case Report:
		w.reports = append(w.reports, a)
	case Commit:
		if w.refuses != nil {
			if e := w.refuses(a); e != nil {
				e.Flight, e.Outcome, e.Err = a.Flight, store.NotCommitted, errTest
				w.events = append(w.events, *e)
				return
			}
		}
		if w.unknown != nil && w.unknown(a) {
			w.events = append(w.events, Ended{Flight: a.Flight, Outcome: store.CommitUnknown, Culprit: -1, Err: errTest})
			return
		}
		w.commits++
		trimmed := map[int]bool{}
		for _, i := range a.Trim {
			trimmed[i] = true
		}
		for i, en := range a.Flight.Entries {
			if _, there := w.markers[en.Item.Identity]; there || trimmed[i] {
				continue
			}
			w.markers[en.Item.Identity] = en.As
			if en.As == AsApplied {
				w.applied = append(w.applied, en.Item.Identity)
			}
		}
		w.events = append(w.events, Ended{Flight: a.Flight, Outcome: store.Committed, Culprit: -1})
	case Rollback:
		w.events = append(w.events, Ended{Flight: a.Flight, Outcome: store.NotCommitted, Culprit: -1})
	case *Settle:
		for _, s := range a.Items {
			w.settled[s.Item] = s.Ending
		}
		w.events = append(w.events, Settled{Settle: a})
	case Done:
		w.done = &a
	}
}

func items(n int, lane string) []*Item {
	var out []*Item
	for i := range n {
		out = append(out, &Item{Lane: source.Lane{ID: lane, Epoch: 1}, Identity: fmt.Sprintf("%s%d", lane, i), Size: 1})
	}
	return out
}

var errTest = errors.New("no")

func TestManyBadMessagesCostFewMarks(t *testing.T) {
	t.Run("case_1_five_thousand_bad_messages_take_few_marks", func(t *testing.T) {
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(5000, "a")}
		w.handler = func(*Item) *Failure { return &Failure{Class: store.ClassPermanent, Err: errTest} }
		w.run(100000)
		if w.marks > 20000 {
			t.Errorf("%d marks, want at most 20,000", w.marks)
		}
		if c := w.m.Counts(); c.Parked != 5000 || c.Deliveries != 5000 {
			t.Errorf("%+v", c)
		}
		t.Logf("%d marks, %d commits", w.marks, w.commits)
	})
}

func TestOneBadMessageHarmsNoNeighbour(t *testing.T) {
	for _, lanes := range []Lanes{Partition, NoOrder} {
		c := testConfig()
		c.Lanes = lanes
		w := newWorld(t, c)
		w.input = [][]*Item{append(items(600, "a"), items(600, "b")...)}
		w.handler = func(it *Item) *Failure {
			if it.Identity == "a7" {
				return &Failure{Class: store.ClassRetry, Err: errTest}
			}
			return nil
		}
		w.run(100000)
		c2 := w.m.Counts()
		if c2.Parked != 1 || c2.Applied != 1199 || c2.Retried != 2 {
			t.Errorf("%+v", c2)
		}
		if lanes == Partition {
			n := -1
			for _, id := range w.applied {
				var i int
				if k, _ := fmt.Sscanf(id, "a%d", &i); k == 1 {
					if i <= n {
						t.Fatalf("a%d after a%d", i, n)
					}
					n = i
				}
			}
		}
	}
}

func BenchmarkMachine(b *testing.B) {
	c := testConfig()
	w := newWorld(&testing.T{}, c)
	for n := 0; n < b.N; n += 500 {
		w.input = append(w.input, items(500, "a"))
	}
	b.ReportAllocs()
	b.ResetTimer()
	w.run(1 << 40)
}
