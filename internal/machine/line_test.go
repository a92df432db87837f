package machine

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// keyed is a machine that processes the messages of each key in order.
type keyed struct {
	t *testing.T
	m *Machine
	// flights contains the batches in progress, by worker.
	flights map[int]*Flight
	flows   int
	came    int
	settled []string
}

func newKeyed(t *testing.T, workers int) *keyed {
	c := testConfig()
	c.Lanes, c.Workers = Key, workers
	k := &keyed{t: t, m: New(c), flights: map[int]*Flight{}}
	k.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
	return k
}

func (k *keyed) step(e Event, now Time) {
	for _, a := range k.m.Step(e, now) {
		switch a := a.(type) {
		case Begin:
			k.flights[a.Flight.Worker] = a.Flight
		case Flow:
			k.flows++
		case *Settle:
			for _, s := range a.Items {
				k.settled = append(k.settled, s.Item.Identity)
			}
			defer k.step(Settled{Settle: a}, now)
		}
	}
}

// fetched adds a message for each key.
func (k *keyed) fetched(keys ...uint64) {
	all := items(len(keys), "a")
	for i, it := range all {
		it.Route, it.Identity = keys[i], fmt.Sprint("m", k.came)
		k.came++
	}
	k.step(Fetched{Items: all}, 0)
}

// ends reports to the machine that a worker's handlers have ended. The parameter fails is the index of the entry whose
// handler fails, or -1 if no handler fails.
func (k *keyed) ends(worker, fails int, now Time) {
	f := k.flights[worker]
	delete(k.flights, worker)
	fresh := make([]store.Verdict, len(f.Entries))
	for i := range fresh {
		fresh[i].Kind = store.Fresh
	}
	k.step(Marked{Flight: f, Verdicts: fresh}, now)
	if fails < 0 {
		k.step(Ran{Flight: f, Done: len(fresh)}, now)
		k.step(Ended{Flight: f, Outcome: store.Committed, Culprit: -1}, now)
		return
	}
	k.step(Ran{Flight: f, Done: fails, Failed: true, Failure: Failure{Class: store.ClassRetry, Err: errTest}}, now)
	k.step(Ended{Flight: f, Outcome: store.NotCommitted, Culprit: -1}, now)
}

// flying returns the keys of the messages in a worker's batch.
func (k *keyed) flying(worker int) (keys []uint64) {
	if f := k.flights[worker]; f != nil {
		for _, en := range f.Entries {
			keys = append(keys, en.Item.Route)
		}
	}
	return keys
}

func TestKeys(t *testing.T) {
	t.Run("C8_one_that_waits_keeps_its_own_messages_back_and_no_others", func(t *testing.T) {
		k := newKeyed(t, 1)
		k.fetched(7, 8, 7, 9, 7) // m0 to m4
		k.ends(0, 0, 0)          // m0 fails
		for k.flights[0] != nil {
			k.ends(0, -1, 0)
		}
		if got := k.settled; len(got) != 2 || got[0] != "m1" || got[1] != "m3" || k.flows != 0 {
			t.Errorf("%q are settled, %d pauses and resumptions of the lane", got, k.flows)
		}
		for now := Time(1); len(k.settled) < 5 && now < testConfig().MaxDelay*2; now += testConfig().MaxDelay {
			k.step(Timer{}, now)
			for k.flights[0] != nil {
				k.ends(0, -1, now)
			}
		}
		if got := k.settled; len(got) != 5 || got[2] != "m0" || got[3] != "m2" || got[4] != "m4" {
			t.Errorf("%q are settled", got)
		}
	})
	t.Run("C8_a_busy_one_keeps_its_worker_and_the_others_of_it_are_taken_over", func(t *testing.T) {
		k := newKeyed(t, 2)
		k.fetched(7) // the only worker runs this message
		k.fetched(8) // the second worker runs this message
		k.fetched(7, 7, 7, 9, 8, 10, 11)
		k.ends(1, -1, 0)
		if got := k.flying(1); len(got) == 0 {
			t.Error("a worker is idle, and keys wait for another")
		}
		for len(k.flying(1)) > 0 {
			for _, key := range k.flying(1) {
				if key == 7 {
					t.Error("a key is under way twice")
				}
			}
			k.ends(1, -1, 0)
		}
		if n := len(k.settled); n != 5 { // all messages except those of key 7
			t.Errorf("%d are settled while the first goes on", n)
		}
	})
	t.Run("law_11_of_a_hundred_thousand_that_came_and_went_nothing_is_kept", func(t *testing.T) {
		k := newKeyed(t, 3)
		for round := range uint64(100) {
			var keys []uint64
			for i := range uint64(1000) {
				keys = append(keys, round*1000+i)
			}
			k.fetched(keys...)
			for len(k.flights) > 0 {
				for w := range k.flights {
					k.ends(w, -1, 0)
				}
			}
			k.settled = nil
		}
		if s := k.m.Size(); s.Kept != 0 || len(k.m.lines) != 0 || len(k.m.spare) > mostSpare {
			t.Errorf("%+v, %d lines, %d to spare", s, len(k.m.lines), len(k.m.spare))
		}
	})
}
