package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// guilty is the id of a message that always fails, with an error that looks like contention or an outage.
const guilty = "a7"

// holdsGuilty returns the index of the entry of message guilty if the handler of that message ran, or -1.
func holdsGuilty(a Commit) int {
	return slices.IndexFunc(a.Flight.Entries, func(en Entry) bool {
		return en.Item.Identity == guilty && en.As == AsApplied && !slices.Contains(a.Trim, slices.IndexFunc(a.Flight.Entries, func(e Entry) bool { return e.Item == en.Item }))
	})
}

// ways contains the ways in which the message guilty fails.
var ways = map[string]func(w *world, class store.Class, fails func() bool){
	"in_its_handler": func(w *world, class store.Class, fails func() bool) {
		w.handler = func(it *Item) *Failure {
			if it.Identity == guilty && fails() {
				return &Failure{Class: class, Err: errTest}
			}
			return nil
		}
	},
	"in_a_queued_statement": func(w *world, class store.Class, fails func() bool) {
		w.refuses = func(a Commit) *Ended {
			if i := holdsGuilty(a); i >= 0 && fails() {
				return &Ended{Class: class, Culprit: i}
			}
			return nil
		}
	},
	"at_COMMIT": func(w *world, class store.Class, fails func() bool) {
		w.refuses = func(a Commit) *Ended {
			if holdsGuilty(a) >= 0 && fails() {
				return &Ended{Class: class, Culprit: -1}
			}
			return nil
		}
	},
}

func always() bool { return true }

// The method named counts the reports that an attempt of the message with the given id has failed.
func (w *world) named(id string) (n int) {
	for _, r := range w.reports {
		if r.Kind == ReportRetry && r.Item.Identity == id {
			n++
		}
	}
	return n
}

func TestAMessageThatAlwaysFailsLikeTheStore(t *testing.T) {
	t.Run("C17_and_trap_T83_alone_it_is_named_charged_and_set_aside", func(t *testing.T) {
		for _, lanes := range []Lanes{Partition, NoOrder} {
			for name, fails := range ways {
				for _, class := range []store.Class{store.ClassContended, store.ClassDown} {
					c := testConfig()
					c.Lanes = lanes
					w := newWorld(t, c)
					w.input = [][]*Item{append(items(600, "a"), items(600, "b")...)}
					fails(w, class, always)
					w.run(100000)
					got := w.m.Counts()
					if got.Applied != 1199 || got.Parked != 1 || w.named(guilty) != c.MaxAttempts-1 {
						t.Errorf("%s, class %d, lanes %d: %+v, named %d times", name, class, lanes, got, w.named(guilty))
					}
				}
			}
		}
	})
	t.Run("C17_a_handler_of_the_whole_batch_is_cut_until_it_is_alone", func(t *testing.T) {
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(600, "a")}
		w.whole = true
		ways["in_its_handler"](w, store.ClassDown, always)
		w.run(100000)
		if got := w.m.Counts(); got.Applied != 599 || got.Parked != 1 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("C17_where_nothing_waits_it_is_an_attempt_of_the_delivery", func(t *testing.T) {
		for name, fails := range ways {
			c := testConfig()
			c.OneAttempt, c.Lanes, c.MaxAttempts = true, NoOrder, 2
			w := newWorld(t, c)
			w.input = [][]*Item{items(20, "a")}
			w.input[0][7].Before = 1
			fails(w, store.ClassDown, always)
			w.run(100000)
			if got := w.m.Counts(); got.Parked != 1 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

func TestAStoreThatComesAndGoes(t *testing.T) {
	t.Run("law_13_a_store_that_flaps_charges_nobody", func(t *testing.T) {
		for name, fails := range ways {
			times, away := 40, false
			w := newWorld(t, testConfig())
			w.input = [][]*Item{items(600, "a")}
			fails(w, store.ClassDown, func() bool {
				if times == 0 {
					return false
				}
				times--
				away = true
				return true
			})
			w.opens = func(*Flight) store.Class {
				if away {
					away = false
					return store.ClassDown
				}
				return store.ClassNone
			}
			w.run(100000)
			if got := w.m.Counts(); got.Applied != 600 || w.named(guilty) != 0 || times != 0 {
				t.Errorf("%s: %+v, named %d times, %d failures left", name, got, w.named(guilty), times)
			}
		}
	})
	t.Run("case_1_what_the_store_exonerates_charges_nobody_however_often_it_comes", func(t *testing.T) {
		for _, class := range []store.Class{store.ClassContended, store.ClassDown} {
			times := 40
			w := newWorld(t, testConfig())
			w.input = [][]*Item{items(600, "a")}
			w.handler = func(it *Item) *Failure {
				if it.Identity != guilty || times == 0 {
					return nil
				}
				times--
				return &Failure{Class: class, Outside: true, Err: errTest}
			}
			w.run(100000)
			if got := w.m.Counts(); got.Applied != 600 || w.named(guilty) != 0 || times != 0 {
				t.Errorf("class %d: %+v, named %d times, %d failures left", class, got, w.named(guilty), times)
			}
		}
	})
	t.Run("case_1_nor_does_what_it_exonerates_when_it_refuses_a_commit", func(t *testing.T) {
		for _, class := range []store.Class{store.ClassContended, store.ClassDown} {
			times := 40
			w := newWorld(t, testConfig())
			w.input = [][]*Item{items(600, "a")}
			w.refuses = func(a Commit) *Ended {
				if holdsGuilty(a) < 0 || times == 0 {
					return nil
				}
				times--
				return &Ended{Class: class, Outside: true, Culprit: -1}
			}
			w.run(100000)
			if got := w.m.Counts(); got.Applied != 600 || w.named(guilty) != 0 || times != 0 {
				t.Errorf("class %d: %+v, named %d times, %d failures left", class, got, w.named(guilty), times)
			}
		}
	})
}

func TestAMessageThatLosesAgainstOthers(t *testing.T) {
	t.Run("case_2_a_message_that_loses_against_others_for_long_is_named_and_not_charged", func(t *testing.T) {
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(600, "a")}
		w.handler = func(it *Item) *Failure {
			if it.Identity != guilty || w.m.now > 10*time.Minute {
				return nil
			}
			return &Failure{Class: store.ClassContended, Outside: true, Err: errTest}
		}
		w.run(100000)
		if got := w.m.Counts(); got.Applied != 600 || w.named(guilty) != 0 {
			t.Errorf("%+v, charged %d times", got, w.named(guilty))
		}
		var waits []Time
		for _, r := range w.reports {
			if r.Kind == ReportWaits && r.Item.Identity == guilty {
				waits = append(waits, r.Wait)
			}
		}
		if len(waits) < 5 || len(waits) > 11 || waits[0] < time.Second || waits[0] > time.Minute {
			t.Errorf("in ten minutes it was named after %v", waits)
		}
	})
	t.Run("case_2_what_it_waited_before_its_own_failure_is_not_told_of_the_next_wait", func(t *testing.T) {
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(600, "a")}
		until := 30 * time.Second
		w.handler = func(it *Item) *Failure {
			switch {
			case it.Identity != guilty:
			case w.m.now < until:
				return &Failure{Class: store.ClassContended, Outside: true, Err: errTest}
			case it.attempts == 0:
				until = w.m.now + 3*time.Minute
				return &Failure{Class: store.ClassRetry, Err: errTest}
			}
			return nil
		}
		w.run(100000)
		var waits []Time
		for _, r := range w.reports {
			if r.Kind == ReportWaits && r.Item.Identity == guilty {
				waits = append(waits, r.Wait)
			}
		}
		if len(waits) < 3 || slices.IsSorted(waits) || slices.Max(waits) > 3*time.Minute {
			t.Errorf("it is told to have waited for %v", waits)
		}
	})
}

func TestAnUnknownCommitCausesNoSuspicion(t *testing.T) {
	t.Run("case_3_a_commit_of_unknown_outcome_charges_nobody", func(t *testing.T) {
		times := 40
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(600, "a")}
		w.unknown = func(a Commit) bool {
			if holdsGuilty(a) < 0 || times == 0 {
				return false
			}
			times--
			return true
		}
		w.run(100000)
		if got := w.m.Counts(); got.Applied != 600 || w.named(guilty) != 0 || times != 0 {
			t.Errorf("%+v, named %d times, %d failures left", got, w.named(guilty), times)
		}
	})
}

func TestAStoreIsBackWhenATransactionOpens(t *testing.T) {
	t.Run("trap_T85_nobody_waits_for_the_handler_in_the_flight_that_asks", func(t *testing.T) {
		for _, full := range []bool{false, true} {
			m, flights := outage(t, full)
			asking := flights[0]
			actions := m.Step(Marked{Flight: asking, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, m.now)
			others := len(begun(actions))
			for range 1000 { // the handler does not return
				actions = m.Step(Timer{}, m.now+time.Second)
				others += len(begun(actions))
				for _, a := range actions {
					if b, ok := a.(Begin); ok {
						m.Step(Marked{Flight: b.Flight, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, m.now)
					}
				}
			}
			if others != 3 {
				t.Errorf("full %t: %d of 3 other workers begin", full, others)
			}
			if full != m.store.down {
				t.Errorf("full %t: down %t before anything is committed", full, m.store.down)
			}
		}
	})
	t.Run("trap_140_a_store_that_opens_transactions_and_takes_none_is_asked_less_and_less", func(t *testing.T) {
		m, flights := outage(t, true)
		asked, began := 0, m.now
		next := flights
		for m.now < began+10*time.Minute {
			for _, f := range next {
				asked++
				m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, m.now)
				m.Step(Ran{Flight: f, Done: 1}, m.now)
				m.Step(Ended{Flight: f, Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: -1}, m.now)
			}
			next = opening(m.Step(Timer{}, m.now+10*time.Millisecond))
		}
		// Random delays of up to a second (full jitter) give two attempts a second on average.
		if asked > 1500 || asked < 300 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
	})
}

// opening returns the batches that the actions begin.
func opening(actions []Action) (flights []*Flight) {
	for _, a := range actions {
		if b, ok := a.(Begin); ok {
			flights = append(flights, b.Flight)
		}
	}
	return flights
}

// outage returns a machine whose store is down, and the batch that tests the store. The machine has four workers, each
// with a message. If the parameter full is true, the store had opened a transaction before it failed.
func outage(t *testing.T, full bool) (*Machine, []*Flight) {
	t.Helper()
	c := testConfig()
	c.Workers, c.Lanes = 4, NoOrder
	m := New(c)
	m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
	all := items(4, "a")
	for i, it := range all {
		it.Route = uint64(i)
	}
	for _, f := range opening(m.Step(Fetched{Items: all}, 0)) {
		if !full {
			m.Step(Marked{Flight: f, Class: store.ClassDown, Err: errTest}, 0)
			continue
		}
		m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
		m.Step(Ran{Flight: f, Done: 1}, 0)
		m.Step(Ended{Flight: f, Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: -1, Err: errTest}, 0)
	}
	flights := opening(m.Step(Timer{}, 10*time.Second))
	if len(flights) != 1 {
		t.Fatalf("full %t: %d flights ask", full, len(flights))
	}
	return m, flights
}
