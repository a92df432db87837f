package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// hourOf lets a machine live for an hour on a store that answers each mark so, and
// counts the transactions that ask.
func hourOf(c Config, n int, v contract.Verdict) (begins int) {
	m := New(c)
	var now, wake Time
	queue := []Event{Given{contract.Lane{ID: "a", Epoch: 1}}}
	fetched := false
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
			case Fetch:
				if !fetched {
					fetched = true
					queue = append(queue, Fetched{Items: items(n, "a")})
				}
			case Begin:
				begins++
				all := make([]contract.Verdict, len(a.Flight.Entries))
				for i := range all {
					all[i] = v
				}
				queue = append(queue, Marked{Flight: a.Flight, Verdicts: all})
			case Commit:
				queue = append(queue, Ended{Flight: a.Flight, Outcome: contract.Committed, Culprit: -1})
			}
		}
	}
	return begins
}

func TestWhatANewerReleaseMarkedCostsTheStore(t *testing.T) {
	t.Run("law_13_many_that_are_held_ask_again_in_few_transactions", func(t *testing.T) {
		c := testConfig()
		c.Lanes, c.MaxMessages = NoOrder, 50
		newer := contract.Verdict{Kind: contract.Newer, Was: semel.Outcome(9)}
		// A wait is 5 s at the mean; each alone, they would be 36,000.
		if n := hourOf(c, 50, newer); n > 8_000 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

func TestWhatIsToldOfAWaitIsOfItsKind(t *testing.T) {
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
