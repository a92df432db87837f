package machine

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// takeFirst removes the first item of a queue.
func takeFirst(q *queue) {
	it := q.firstItem()
	q.remove(it)
	it.state = gone
}

func TestAQueueThatIsNeverEmpty(t *testing.T) {
	t.Run("trap_T88_it_holds_what_is_in_it_and_not_what_has_passed", func(t *testing.T) {
		var q queue
		arrival := uint64(0)
		push := func() {
			arrival++
			q.push(&Item{progress: progress{arrival: arrival, placement: placement{state: queued}}})
		}
		for range 100 {
			push()
		}
		for range 400_000 {
			push()
			takeFirst(&q)
		}
		if cap(q.items) > maxIdleCapacity {
			t.Errorf("100 items stand in a queue of %d", cap(q.items))
		}
	})
	t.Run("trap_T88_it_lets_go_of_what_has_left_behind_its_head", func(t *testing.T) {
		var q queue
		first := &Item{progress: progress{placement: placement{state: queued}}}
		q.push(first) // the worker of this item is stuck, and lanes are assigned and lost
		for arrival := range uint64(100_000) {
			it := &Item{progress: progress{arrival: arrival + 1, placement: placement{state: queued}}}
			q.push(it)
			it.state = gone
		}
		if cap(q.items) > maxIdleCapacity || q.firstItem() != first {
			t.Errorf("one item stands in a queue of %d", cap(q.items))
		}
	})
	t.Run("trap_T88_it_gives_back_what_a_backlog_took", func(t *testing.T) {
		var q queue
		arrival := uint64(0)
		push := func() {
			arrival++
			q.push(&Item{progress: progress{arrival: arrival, placement: placement{state: queued}}})
		}
		for range 100_000 {
			push()
		}
		for range 99_900 {
			takeFirst(&q)
		}
		for range 200_000 {
			push()
			takeFirst(&q)
		}
		if cap(q.items) > maxIdleCapacity || q.firstItem().arrival != arrival-99 {
			t.Errorf("100 items stand in a queue of %d, the first is %d of %d", cap(q.items), q.firstItem().arrival, arrival)
		}
	})
}

func TestHeldItemsThatLeave(t *testing.T) {
	t.Run("law_11_it_is_not_kept_until_its_moment_comes", func(t *testing.T) {
		m := New(testConfig())
		waits := func(lane source.Lane) {
			m.Step(Given{Lane: lane}, 0) // an older epoch of the lane is lost
			f := opening(m.Step(Fetched{Items: []*Item{{Lane: lane, Identity: lane.ID}}}, 0))[0]
			m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Busy}}}, 0)
			m.Step(Ended{Flight: f, Outcome: store.Committed, Culprit: -1}, 0)
			if f.Entries[0].Item.state != held {
				t.Fatal("it does not wait")
			}
		}
		waits(source.Lane{ID: "stays", Epoch: 1})
		m.held[0].until = 1 // the earliest time in the heap
		for epoch := range uint64(20_000) {
			waits(source.Lane{ID: "a", Epoch: epoch + 1})
		}
		if n := m.Size().Kept; n > 16 {
			t.Errorf("two wait, and the machine keeps %d entries", n)
		}
	})
	t.Run("law_11_those_that_stay_come_back_in_their_order", func(t *testing.T) {
		var h heldHeap
		var all []*Item
		for i := range 5000 {
			it := &Item{progress: progress{arrival: uint64(i), placement: placement{until: Time(i * 7919 % 997)}}}
			all = append(all, it)
			heap.Push(&h, it)
		}
		for i := 0; i < len(all); i += 2 {
			heap.Remove(&h, int(all[i].index))
		}
		var last *Item
		for n := len(all) / 2; n > 0; n-- {
			it := heap.Pop(&h).(*Item)
			if it.arrival%2 == 0 || last != nil && (it.until < last.until || it.until == last.until && it.arrival < last.arrival) {
				t.Fatalf("%d, until %v, comes after %d, until %v", it.arrival, it.until, last.arrival, last.until)
			}
			last = it
		}
		if len(h) != 0 || cap(h) > maxIdleCapacity {
			t.Errorf("%d wait still, in a list of %d", len(h), cap(h))
		}
	})
}

func TestALaneWithManyRidersThatGoes(t *testing.T) {
	const riders = 10_000
	// load returns a machine with a first copy of a message in lane a, and further copies in lane b, which wait for the
	// first copy. Further messages of lane a arrived between the copies, so the copies are not adjacent in the list of
	// all items.
	load := func(t *testing.T, lanes Lanes) *Machine {
		c := testConfig()
		c.MaxMessages, c.Lanes = 10*riders, lanes
		m := New(c)
		m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
		m.Step(Given{Lane: source.Lane{ID: "b", Epoch: 1}}, 0)
		all := []*Item{{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "first"}, {Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "carrier"}}
		for i := range riders {
			all = append(all, &Item{Lane: source.Lane{ID: "b", Epoch: 1}, Identity: "carrier"}, &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: fmt.Sprint(i)})
		}
		m.workers[0].batchLimit = 1
		m.Step(Fetched{Items: all}, 0)
		m.touched = 0
		return m
	}
	t.Run("trap_T89_the_work_grows_with_the_riders_and_not_with_their_square", func(t *testing.T) {
		for _, lanes := range []Lanes{Partition, NoOrder} {
			for name, gone := range map[string]source.Lane{"the riders'": {ID: "b", Epoch: 1}, "the carrier's": {ID: "a", Epoch: 1}} {
				m := load(t, lanes)
				before, _ := m.Unsettled()
				m.Step(Lost{gone}, 0)
				after, _ := m.Unsettled()
				if before-after < riders {
					t.Errorf("lanes %d, %s lane: %d of %d left", lanes, name, before-after, before)
				}
				if m.touched > 20*riders {
					t.Errorf("lanes %d, %s lane: %d items were touched for %d riders", lanes, name, m.touched, riders)
				}
			}
		}
	})
	t.Run("trap_T89_what_blocks_no_longer_is_taken_out_at_once_for_many", func(t *testing.T) {
		var b blockers
		items := make([]*Item, riders)
		for i := range items {
			items[i] = &Item{progress: progress{arrival: uint64(i + 1)}}
			b.add(items[i])
		}
		for _, it := range slices.Backward(items[1:]) {
			b.remove(it)
		}
		if b.firstItem() != items[0] || len(b.heap) > 32 {
			t.Errorf("%d stand there after %d were removed", len(b.heap), riders-1)
		}
		b.add(items[5])
		b.remove(items[0])
		if b.firstItem() != items[5] || b.count != 1 {
			t.Errorf("the first is %+v of %d", b.firstItem(), b.count)
		}
	})
}
