package file

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

func TestThePositionNeverPassesAnUnsettledLine(t *testing.T) {
	t.Run("trap_33_settlements_in_any_order_move_the_position_over_a_contiguous_prefix_only", func(t *testing.T) {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 2))
			settleRandomly(t, random)
		}
	})
	t.Run("trap_25_settling_a_later_line_does_not_settle_an_earlier_one", func(t *testing.T) {
		var track tracker
		track.deliver(0, 10)
		track.deliver(10, 20)
		track.settle(10)
		if got := track.position(); got != 0 {
			t.Errorf("the position is %d while the line at 0 is unsettled", got)
		}
		track.settle(0)
		if got := track.position(); got != 20 {
			t.Errorf("the position is %d, not 20, when both are settled", got)
		}
	})
}

// settleRandomly compares a tracker with a map, for random deliveries and acks.
func settleRandomly(t *testing.T, random *rand.Rand) {
	t.Helper()
	var track tracker
	open := map[int64]bool{}
	end := int64(0)
	for range 300 {
		if random.IntN(3) > 0 {
			start := end + int64(random.IntN(3)) // there may be blank lines between two lines
			end = start + 1 + int64(random.IntN(50))
			track.deliver(start, end)
			open[start] = true
		}
		start := random.Int64N(end + 1)
		for o := range open {
			if random.IntN(2) == 0 {
				start = o
			}
			break
		}
		if got := track.settle(start); got != open[start] {
			t.Fatalf("settling %d says %v", start, got)
		}
		delete(open, start)
		want := end
		for o := range open {
			want = min(want, o)
		}
		if got := track.position(); got != want || track.countUnsettled() != len(open) {
			t.Fatalf("position %d with %d unsettled; want %d with %d", got, track.countUnsettled(), want, len(open))
		}
	}
}

func TestSettledLinesUseNoMemoryBehindAnUnsettledLine(t *testing.T) {
	var track tracker
	track.deliver(0, 1)
	for i := range int64(100_000) {
		track.deliver(i+1, i+2)
		track.settle(i + 1)
	}
	if len(track.openLines) > 4 || cap(track.openLines) > 64 {
		t.Errorf("%d entries, room for %d", len(track.openLines), cap(track.openLines))
	}
}

func TestAMessageSettledLateIsNotDeliveredAgain(t *testing.T) {
	l := newLedger()
	g := &generation{}
	d := &deliveryHandle{generation: g, start: 0, end: 9}
	l.deliver(d)
	handOver := source.Settlement{Delivery: &source.Delivery{}, Kind: semel.Nack, After: -time.Second}
	l.settle(d, handOver)
	l.settle(d, handOver) // a second nack changes nothing
	if len(l.nackedLines) != 1 {
		t.Fatalf("%d are handed back, not 1", len(l.nackedLines))
	}
	l.settle(d, source.Settlement{Kind: semel.Ack})
	if b, _ := l.takeDue(); b != nil || !l.isSettled() {
		t.Error("a line that was settled after it was handed back comes again")
	}
}
