//go:build unix

package kafka

import (
	"testing"
)

func TestWhatWaitsIsHeldBack(t *testing.T) {
	of := func(p Proof) *run {
		r := &run{Proof: p}
		if p.Order {
			r.places = p.makeVersions()
		}
		return r
	}
	order := of(Order(Full(), true))
	t.Run("fewer_and_fewer_as_what_is_parked_is_retried_and_gaps_are_filled_and_skipped", func(t *testing.T) {
		var counts []int
		for s := untilMended; s <= untilNothing; s++ {
			held := order.heldBack(s)
			for _, event := range held {
				if v := order.places[event]; v.number < 3 || v.isLate() || s == untilSkipped && !isSkipped(v.stream) {
					t.Errorf("%+v is held back until %d", v, s)
				}
			}
			counts = append(counts, len(held))
		}
		if counts[0] <= counts[1] || counts[1] <= counts[2] || counts[2] < 100 || counts[3] != 0 {
			t.Errorf("%d are held back", counts)
		}
	})
	t.Run("of_the_inbox_only_what_is_parked_and_of_keys_what_is_behind_it_too", func(t *testing.T) {
		inbox := of(Inbox(Full(), true))
		keyed := Order(Full(), true)
		keyed.Keys = true
		keys := of(keyed)
		if n, m := len(inbox.heldBack(untilMended)), len(keys.heldBack(untilMended)); n != poisoned || m <= 10*poisoned {
			t.Errorf("%d and %d", n, m)
		}
		if n := len(inbox.heldBack(untilFilled)) + len(keys.heldBack(untilFilled)); n != 0 {
			t.Errorf("%d are held back when all is retried", n)
		}
	})
	t.Run("and_all_that_is_held_back_waits", func(t *testing.T) {
		held := map[string]int{"a": 1, "b": 2, "c": 3}
		rows := []waitingRow{{id: "a", state: "BLOCKED"}, {id: "b", state: "PARKED"}, {id: "d", state: "BLOCKED"}, {id: "c", state: "RECEIVED"}}
		free, missing := findUnheld(rows, held)
		if len(free) != 2 || free[0].id != "d" || free[1].id != "c" || missing != 1 {
			t.Errorf("%v, %d missing", free, missing)
		}
	})
}
