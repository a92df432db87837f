package storetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/source"
)

// offsets are the laws of a source.OffsetStore.
func (s suite[Tx]) offsets(t *T) {
	t.Run("I7_an_offset_only_goes_forward_and_who_writes_it_is_told_what_stood_there",
		"Offsets are raised and never lowered, and each write returns what stood before it.",
		func(t *T) {
			o := offsetsOf(t, s.opened(t).Store)
			o.stand(map[string]int64{"a": none, "b": none})
			o.advances(to("a", 10, none), to("b", 1<<40, none), to("c", 0, none))(none, none, none)
			o.advances(to("b", 7, 7), to("a", 12, 10))(1<<40, 10)
			o.advances(to("a", 11, none), to("b", 1<<40, 1<<40))(12, 1<<40)
			o.stand(map[string]int64{"a": 12, "b": 1 << 40, "c": 0, "d": none})
			o.advances()()
		})
	t.Run("trap_T110_nothing_is_written_where_one_lane_stands_below_what_was_written_before",
		"If one offset is less than it must be, or is not there, none is written: the database is not the one that was written to.",
		func(t *T) {
			o := offsetsOf(t, s.opened(t).Store)
			o.advances(to("a", 10, none), to("b", 20, none))(none, none)
			o.advances(to("b", 30, 20), to("a", 15, 11))(20, 10)
			o.stand(map[string]int64{"a": 10, "b": 20})
			o.advances(to("a", 15, 10), to("c", 5, 3))(10, none)
			o.stand(map[string]int64{"a": 10, "b": 20, "c": none})
			o.advances(to("a", 15, 10), to("b", 30, 20))(10, 20)
			o.stand(map[string]int64{"a": 15, "b": 30})
		})
	t.Run("I7_offsets_are_kept_by_consumer_and_lane",
		"An offset is of its consumer and lane alone, whatever they are called.",
		func(t *T) {
			o := offsetsOf(t, s.opened(t).Store)
			odd := []string{"kafka:group {\"\\,}:orders/1@00ff", "NULL", "", "ä'; --"}
			o.advances(to(odd[0], 1, none), to(odd[1], 2, none), to(odd[2], 3, none), to(odd[3], 4, none))(none, none, none, none)
			o.stand(map[string]int64{odd[0]: 1, odd[1]: 2, odd[2]: 3, odd[3]: 4, "kafka:group": none})
			o.consumer = "other"
			o.stand(map[string]int64{odd[0]: none, odd[1]: none})
		})
	t.Run("case_13_offsets_stand_beside_other_positions",
		"An offset changes no position of another name, and many lanes are one call.",
		func(t *T) {
			store := s.opened(t).Store
			o := offsetsOf(t, store)
			if p, ok := store.(source.PositionStore); ok {
				t.must(p.SavePosition(t.context(), "c", "l", source.Position{Offset: 5, Length: 6, Check: []byte("x")}))
				defer s.wantPosition(t, p, "l", source.Position{Offset: 5, Length: 6, Check: []byte("x")})
			}
			all, want := []source.OffsetAdvance{}, map[string]int64{}
			for i := range manyLanes {
				lane := fmt.Sprint("lane ", i)
				all, want[lane] = append(all, to(lane, int64(i), none)), int64(i)
			}
			o.advance(all)
			o.stand(want)
		})
	s.offsetsAtOnce(t)
}

// manyLanes are more than a consumer has in most places.
const manyLanes = 1500

// offsetsAtOnce are the laws of several that advance offsets at once, and of calls
// that fail.
func (s suite[Tx]) offsetsAtOnce(t *T) {
	t.Run("I7_of_several_that_raise_the_same_offsets_the_furthest_stands",
		"Processes that write the same lanes at once, in whatever order, do not lock each other out and lower nothing.",
		func(t *T) {
			o := offsetsOf(t, s.opened(t).Store)
			errs := make([]error, keepers)
			together(keepers, func(i int) {
				for n := range int64(10) {
					all := []source.OffsetAdvance{to("a", n*keepers+int64(i), none), to("b", n*keepers+int64(i), none), to("c", n, none)}
					if i%2 == 0 {
						slices.Reverse(all)
					}
					if _, err := o.store.AdvanceOffsets(t.context(), "c", all); err != nil {
						errs[i] = err
					}
				}
			})
			for _, err := range errs {
				t.must(err)
			}
			o.stand(map[string]int64{"a": 10*keepers - 1, "b": 10*keepers - 1, "c": 9})
		})
	t.Run("I7_an_advance_with_a_cancelled_context_fails_or_is_done",
		"A call whose context has ended leaves all of its offsets or none.",
		func(t *T) {
			o := offsetsOf(t, s.opened(t).Store)
			ctx, cancel := context.WithCancel(t.context())
			cancel()
			want := int64(none)
			if _, err := o.store.AdvanceOffsets(ctx, "c", []source.OffsetAdvance{to("a", 1, none), to("b", 1, none)}); err == nil {
				want = 1
			}
			o.stand(map[string]int64{"a": want, "b": want})
		})
}

const none = source.NoOffset

func to(lane string, offset, least int64) source.OffsetAdvance {
	return source.OffsetAdvance{LaneOffset: source.LaneOffset{Lane: lane, Offset: offset}, Least: least}
}

// laneOffsets are those of a consumer in a store.
type laneOffsets struct {
	t        *T
	store    source.OffsetStore
	consumer string
}

func offsetsOf(t *T, store any) *laneOffsets {
	return &laneOffsets{t: t, store: store.(source.OffsetStore), consumer: "c"}
}

func (o *laneOffsets) advance(all []source.OffsetAdvance) []source.LaneOffset {
	o.t.Helper()
	before, err := o.store.AdvanceOffsets(o.t.context(), o.consumer, all)
	o.t.must(err)
	if len(before) != len(all) {
		o.t.Fatalf("%d answers to %d lanes", len(before), len(all))
	}
	return before
}

// advances advances lanes; what it returns holds what stood before to what is given.
func (o *laneOffsets) advances(all ...source.OffsetAdvance) func(before ...int64) {
	o.t.Helper()
	got := o.advance(all)
	return func(before ...int64) {
		o.t.Helper()
		for i, want := range before {
			if got[i] != (source.LaneOffset{Lane: all[i].Lane, Offset: want}) {
				o.t.Errorf("before lane %q advanced there stood %+v, want %d", all[i].Lane, got[i], want)
			}
		}
	}
}

// stand holds what stands to what is given.
func (o *laneOffsets) stand(want map[string]int64) {
	o.t.Helper()
	var lanes []string
	for lane := range want {
		lanes = append(lanes, lane)
	}
	got, err := o.store.Offsets(o.t.context(), o.consumer, lanes)
	o.t.must(err)
	if len(got) != len(lanes) {
		o.t.Fatalf("%d offsets of %d lanes", len(got), len(lanes))
	}
	for i, lane := range lanes {
		if got[i] != (source.LaneOffset{Lane: lane, Offset: want[lane]}) {
			o.t.Errorf("lane %q: there stands %+v, want %d", lane, got[i], want[lane])
		}
	}
}
