package machine

import (
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// begun returns the workers whose batches the actions begin.
func begun(actions []Action) (workers []int) {
	for _, a := range actions {
		if b, ok := a.(Begin); ok {
			workers = append(workers, b.Flight.Worker)
		}
	}
	return workers
}

// contended returns a machine after contention, with two workers and a message for each worker.
func contended(t *testing.T) (*Machine, []int) {
	t.Helper()
	c := testConfig()
	c.Workers, c.SerialFor = 2, time.Minute
	m := New(c)
	m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
	m.Step(Given{Lane: source.Lane{ID: "b", Epoch: 1}}, 0)
	m.serialise()
	return m, begun(m.Step(Fetched{Items: append(items(1, "a"), items(1, "b")...)}, 0))
}

func TestASerialisedConsumerHasOneBatchUnderWay(t *testing.T) {
	m, first := contended(t)
	if len(first) != 1 {
		t.Fatalf("workers %v begin at once", first)
	}
	f := m.workers[first[0]].flight
	m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
	m.Step(Ran{Flight: f, Done: 1}, 0)
	if next := begun(m.Step(Ended{Flight: f, Outcome: store.Committed, Culprit: -1}, 0)); len(next) != 1 || next[0] == first[0] {
		t.Errorf("after the commit workers %v begin", next)
	}
}

func TestACallbackOfACommitThatDoesNotEndHoldsNoSerialisedBatchUp(t *testing.T) {
	m, first := contended(t)
	f := m.workers[first[0]].flight
	m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
	m.Step(Ran{Flight: f, Done: 1}, 0)
	if next := begun(m.Step(Stuck{Flight: f, Item: f.Entries[0].Item, Committing: true}, 0)); len(next) != 1 || next[0] == first[0] {
		t.Errorf("beside the callback workers %v begin", next)
	}
	m.Step(Given{Lane: source.Lane{ID: "c", Epoch: 1}}, 0)
	m.Step(Fetched{Items: items(1, "c")}, 0)
	if m.lanes["c"].line.worker == first[0] {
		t.Error("a new lane waits for the callback")
	}
}

func TestAHandlerThatDoesNotEndHoldsNoSerialisedBatchUp(t *testing.T) {
	m, first := contended(t)
	m.workers[first[0]].flight.cut = true
	if next := begun(m.Step(Timer{}, 0)); len(next) != 1 || next[0] == first[0] {
		t.Errorf("beside the handler workers %v begin", next)
	}
}
