package upkeep

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
)

func TestH2TheProgressOfLanesIfTheSourceDoesNotReportIt(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(1e9+n, 0) }
	type lanes = []source.LaneAge
	delivered := func(a *LaneAges, lane string, at time.Time) { a.recordTimes(maps.All(map[string]time.Time{lane: at})) }
	var a LaneAges
	want := func(what string, underWay, over, known bool, all lanes) {
		t.Helper()
		got, knows := a.take(underWay, over)
		if knows != known || !slices.Equal(got, all) {
			t.Errorf("%s: %v, %t; want %v, %t", what, got, knows, all, known)
		}
	}
	want("nobody asks the source yet", false, false, false, nil)
	a.Asks(true)
	want("no lane was given", false, false, true, nil)
	a.Given("b")
	a.Given("a")
	want("two were, with nothing in them", false, false, true, lanes{{Lane: "a"}, {Lane: "b"}})
	delivered(&a, "b", at(5))
	delivered(&a, "b", at(3))
	delivered(&a, "b", at(9))
	want("one is behind: of the other nobody knows", false, false, true, lanes{{Lane: "b", Oldest: at(3)}})
	want("nothing new, and something is under way", true, false, false, nil)
	want("all is settled", false, false, true, lanes{{Lane: "a"}, {Lane: "b"}})
	a.Asks(false)
	want("the consumer is paused, and more may be there", false, false, false, nil)
	delivered(&a, "a", at(1))
	want("the run is over, and nothing was left", true, true, true, lanes{{Lane: "a"}, {Lane: "b"}})
	a.Lost("a")
	a.Asks(true)
	want("of what another has this run says nothing", false, false, true, lanes{{Lane: "b"}})
}
