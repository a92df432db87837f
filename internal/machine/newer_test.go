package machine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// anHour runs a machine with the given lanes for an hour of virtual time. The function answer returns the response to
// an action, or nil for no response. Commits succeed. The result describes the end of the machine, or is nil if the
// machine did not end.
func anHour(c Config, lanes []string, answer func(Action) Event) *Done {
	m := New(c)
	var now, wake Time
	var queue []Event
	for _, lane := range lanes {
		queue = append(queue, Given{Lane: source.Lane{ID: lane, Epoch: 1}})
	}
	for now < time.Hour {
		var e Event = Timer{}
		if len(queue) > 0 {
			e, queue = queue[0], queue[1:]
		} else {
			now = wake
		}
		for _, a := range m.Step(e, now) {
			switch a := a.(type) {
			case Wake:
				wake = a.At
			case Commit:
				queue = append(queue, Ended{Flight: a.Flight, Outcome: store.Committed, Culprit: -1})
			case Done:
				return &a
			default:
				if next := answer(a); next != nil {
					queue = append(queue, next)
				}
			}
		}
	}
	return nil
}

// hourOf runs a machine for an hour of virtual time with a store whose answer for every message is v, and returns the
// number of transactions.
func hourOf(c Config, n int, v store.Verdict) (begins int) {
	fetched := false
	anHour(c, []string{"a"}, func(a Action) Event {
		switch a := a.(type) {
		case Fetch:
			if !fetched {
				fetched = true
				return Fetched{Items: items(n, "a")}
			}
		case Begin:
			begins++
			return Marked{Flight: a.Flight, Verdicts: slices.Repeat([]store.Verdict{v}, len(a.Flight.Entries))}
		}
		return nil
	})
	return begins
}

func TestTransactionsForMessagesOfANewerRelease(t *testing.T) {
	t.Run("law_13_many_that_are_held_ask_again_in_few_transactions", func(t *testing.T) {
		c := testConfig()
		c.Lanes, c.MaxMessages = NoOrder, 50
		newer := store.Verdict{Kind: store.Newer, Was: store.Outcome(9)}
		// A message waits 5 s on average. With one transaction for each message, there would be 36,000 transactions.
		if n := hourOf(c, 50, newer); n > 8_000 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

func TestReportsOfAWaitHaveItsKind(t *testing.T) {
	m := New(testConfig())
	it := &Item{}
	told := func(at time.Duration, kind ReportKind) bool {
		m.now = at
		return m.tellWaiting(it, kind, errors.New("in a test"))
	}
	if told(time.Second, ReportBusy) || !told(3*time.Second, ReportBusy) || told(4*time.Second, ReportNewer) || !told(5*time.Second, ReportNewer) || told(6*time.Second, ReportBusy) {
		t.Error("a wait for what a newer release knows is told a second after it begins, and not with the wait before")
	}
}

// ends runs a machine that may end because it is idle. The identities in the parameter newer have a marker that a newer
// release wrote. The result describes the end of the machine, or is nil if the machine did not end within an hour.
func ends(c Config, given []*Item, newer string, answer Fetched) *Done {
	fetched := false
	return anHour(c, []string{"a", "b"}, func(a Action) Event {
		switch a := a.(type) {
		case Fetch:
			if n := min(len(given), a.Messages); !fetched {
				fetched = true
				return Fetched{Items: given[:n], End: answer.End}
			}
		case CancelFetch:
			return answer
		case Begin:
			return Marked{Flight: a.Flight, Verdicts: verdictsOn(a.Flight, newer)}
		case Run:
			return Ran{Flight: a.Flight, Done: len(a.Fresh)}
		case *Settle:
			return Settled{Settle: a}
		}
		return nil
	})
}

func verdictsOn(f *Flight, newer string) []store.Verdict {
	all := make([]store.Verdict, len(f.Entries))
	for i, en := range f.Entries {
		all[i] = store.Verdict{Kind: store.Fresh}
		if en.Item.Identity == newer {
			all[i] = store.Verdict{Kind: store.Newer, Was: store.Outcome(9)}
		}
	}
	return all
}

func TestARunEndsWithMessagesOfANewerReleaseLeft(t *testing.T) {
	four := func() []*Item {
		var all []*Item
		for i, lane := range []string{"a", "a", "a", "b"} {
			all = append(all, &Item{Lane: source.Lane{ID: lane, Epoch: 1}, Identity: string(rune('1' + i)), Before: -1})
		}
		return all
	}
	left := func(t *testing.T, d *Done, messages int) {
		t.Helper()
		if d == nil || !d.Idle || len(d.Behind) != 1 {
			t.Fatalf("it ends as %+v", d)
		}
		if b := d.Behind[0]; b.Lane.ID != "a" || b.Messages != messages || b.Item == nil || b.Item.Identity != "2" || b.Why == nil {
			t.Errorf("left is %+v", b)
		}
	}
	idle := testConfig()
	idle.IdleExit = 2 * time.Second
	t.Run("law_11_with_IdleExit_and_names_the_message_with_what_is_behind_it", func(t *testing.T) {
		left(t, ends(idle, four(), "2", Fetched{}), 2)
	})
	t.Run("law_11_without_order_only_the_message_is_left", func(t *testing.T) {
		c := idle
		c.Lanes = NoOrder
		left(t, ends(c, four(), "2", Fetched{}), 1)
	})
	t.Run("law_11_where_its_messages_fill_the_memory_so_that_nothing_is_fetched", func(t *testing.T) {
		c := idle
		c.MaxMessages = 2
		left(t, ends(c, four()[1:], "2", Fetched{More: true}), 2)
	})
	t.Run("law_11_or_its_bytes_do", func(t *testing.T) {
		c := idle
		c.MaxBytes = 200
		all := four()[1:3]
		for _, it := range all {
			it.Size = 100
		}
		left(t, ends(c, all, "2", Fetched{More: true}), 2)
	})
	t.Run("law_11_not_while_something_may_still_run", func(t *testing.T) {
		m := New(testConfig())
		m.inState[awaited] = 1
		only := func(want bool, why string) {
			t.Helper()
			if m.onlyAwaits() != want {
				t.Errorf("%s: only such messages are left: %t", why, !want)
			}
		}
		only(true, "nothing else is there")
		m.store.down = true
		only(false, "the store is down")
		m.store.down = false
		m.workers[0].backoffUntil = m.now + time.Second
		only(false, "a worker waits after contention")
		m.now = m.workers[0].backoffUntil
		only(true, "it may start again")
	})
	t.Run("law_11_where_the_source_has_ended", func(t *testing.T) {
		left(t, ends(testConfig(), four(), "2", Fetched{End: true}), 2)
	})
	t.Run("law_11_where_the_source_says_that_it_is_at_its_end", func(t *testing.T) {
		c := testConfig()
		c.Ends = true
		left(t, ends(c, four(), "2", Fetched{}), 2)
	})
	t.Run("trap_T95_not_while_the_source_has_more", func(t *testing.T) {
		c := testConfig()
		c.Ends = true
		if d := ends(c, four(), "2", Fetched{More: true}); d != nil {
			t.Errorf("it ends as %+v", d)
		}
	})
	t.Run("law_11_not_where_the_source_has_no_end", func(t *testing.T) {
		if d := ends(testConfig(), four(), "2", Fetched{}); d != nil {
			t.Errorf("it ends as %+v", d)
		}
	})
}

func TestTheErrorForAMarkerOfANewerRelease(t *testing.T) {
	t.Run("trap_T104_it_names_the_number_that_stands_there", func(t *testing.T) {
		for number, want := range map[int64]string{9: "outcome 9,", 257: "outcome 257,", -1: "outcome -1,", 0: "outcome 0,"} {
			if text := newerError(store.Found(number)).Error(); !strings.Contains(text, want) {
				t.Errorf("of %d: %s", number, text)
			}
		}
		if text := newerError(store.Verdict{Kind: store.Newer, Was: store.Applied}).Error(); !strings.Contains(text, "of a form") {
			t.Error(text)
		}
	})
}
