package streams

import (
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

func version(stream string, n int64, as store.Outcome) store.Mark {
	return store.Mark{Scope: 1, As: as, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{byte(n)}},
		Version: versions.Position{Stream: []byte(stream), Number: n, Start: 1, Asks: true}}
}

// judgeFresh returns the answers of Judge for messages that were all Fresh.
func judgeFresh(b *Batch, marks []store.Mark) (kinds []store.VerdictKind) {
	verdicts := make([]store.Verdict, len(marks))
	for i := range verdicts {
		verdicts[i].Kind = store.Fresh
	}
	b.Judge(verdicts)
	for _, v := range verdicts {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

func TestVersionsOfABatch(t *testing.T) {
	const (
		applied, discarded, parked, waiting = store.Applied, store.Discarded, store.Parked, store.Waiting
		fresh, gap, stale                   = store.Fresh, store.Gap, store.Stale
	)
	for name, c := range map[string]struct {
		marks  []store.Mark
		want   []store.VerdictKind
		trim   []int
		claims map[int]store.RowState
		moved  int64 // the new position of stream a, which was at 0
	}{
		"B4_each_counts_on_those_before_it": {marks: []store.Mark{version("a", 1, applied), version("a", 2, applied), version("a", 4, applied), version("a", 3, applied)},
			want: []store.VerdictKind{fresh, fresh, gap, fresh}, trim: []int{2}, moved: 3},
		"B4_one_that_is_taken_back_takes_back_those_after_it": {marks: []store.Mark{version("a", 1, applied), version("a", 2, applied), version("a", 3, applied)},
			want: []store.VerdictKind{fresh, fresh, fresh}, trim: []int{1}, moved: 1},
		"B4_what_is_discarded_is_passed": {marks: []store.Mark{version("a", 1, discarded), version("a", 2, applied)},
			want: []store.VerdictKind{fresh, fresh}, moved: 2},
		"B4_what_is_parked_is_not": {marks: []store.Mark{version("a", 1, parked), version("a", 2, applied)},
			want: []store.VerdictKind{fresh, gap}, trim: []int{1}, moved: 0},
		"B4_an_old_one_is_stale": {marks: []store.Mark{version("a", 1, applied), version("a", 1, applied)},
			want: []store.VerdictKind{fresh, stale}, trim: []int{1}, moved: 1},
		"B4_one_that_is_discarded_before_its_turn_waits_for_it": {marks: []store.Mark{version("a", 3, discarded)}, want: []store.VerdictKind{gap}, trim: []int{0}, moved: 0},
		"B4_one_that_is_discarded_late_moves_nothing": {marks: []store.Mark{version("a", 1, applied), version("a", 2, applied), version("a", 1, discarded)},
			want: []store.VerdictKind{fresh, fresh, fresh}, moved: 2},
		"B9_what_waits_moves_nothing": {marks: []store.Mark{version("a", 1, waiting)}, want: []store.VerdictKind{fresh}, moved: 0},
		"B9_a_claim_that_is_released_moves_nothing": {marks: []store.Mark{version("a", 1, applied), version("a", 2, applied)},
			want: []store.VerdictKind{fresh, fresh}, claims: map[int]store.RowState{0: store.StateReceived, 1: store.StateCompleted}, moved: 0},
		"B9_a_claim_that_does_not_end_moves_nothing": {marks: []store.Mark{version("a", 1, applied)}, want: []store.VerdictKind{fresh}, claims: map[int]store.RowState{}, moved: 0},
		"B9_a_claim_that_is_completed_moves": {marks: []store.Mark{version("a", 1, applied), version("a", 2, applied)},
			want: []store.VerdictKind{fresh, fresh}, claims: map[int]store.RowState{0: store.StateDiscarded, 1: store.StateCompleted}, moved: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := store.Ending{Trim: c.trim}
			if c.claims != nil {
				for i := range c.marks {
					c.marks[i].Claim = store.Claim{Number: int64(i + 1), Token: 7}
					if state, ends := c.claims[i]; ends {
						e.Claims = append(e.Claims, store.ClaimEnding{Mark: i, State: state})
					}
				}
			}
			b := Of(c.marks)
			if got := judgeFresh(b, c.marks); !slices.Equal(got, c.want) {
				t.Errorf("judged %v, want %v", got, c.want)
			}
			_, moved := b.End(e)
			last := int64(0)
			for _, s := range moved {
				last = s.Last
			}
			if last != c.moved || len(moved) > 1 {
				t.Errorf("moved %+v, want %d", moved, c.moved)
			}
		})
	}
	t.Run("B4_streams_are_taken_in_one_order_whatever_that_of_the_marks", func(t *testing.T) {
		away := version("a", 1, applied)
		away.Scope = 2
		b := Of([]store.Mark{away, version("b", 1, applied), version("a", 1, applied), {Scope: 1, As: applied}, version("b", 2, applied)})
		var names []string
		for _, s := range b.All() {
			names = append(names, fmt.Sprint(s.Scope, string(s.Name)))
		}
		if !slices.Equal(names, []string{"1a", "1b", "2a"}) {
			t.Errorf("%v", names)
		}
	})
	t.Run("B4_the_largest_version_moves_its_stream", func(t *testing.T) {
		m := version("a", versions.Max, applied)
		m.Version.Start = 0
		b := Of([]store.Mark{m})
		b.Judge([]store.Verdict{{Kind: store.Fresh}})
		_, moved := b.End(store.Ending{})
		if places, numbers := Turns(moved); !slices.Equal(places, []int64{1, 1}) || !slices.Equal(numbers, []int64{versions.Max, versions.Max + 1}) {
			t.Errorf("%v in %v is due", numbers, places)
		}
	})
	t.Run("B4_trap_T53_what_is_not_judged_begins_its_stream_with_its_smallest_version", func(t *testing.T) {
		parked := func(stream string, n int64) store.Mark {
			return store.Mark{Scope: 1, As: store.Parked, Version: versions.Position{Stream: []byte(stream), Number: n}}
		}
		after := version("b", 9, applied)
		after.Version.Start = 0
		b := Of([]store.Mark{parked("a", 7), parked("a", 5), parked("a", 6), parked("c", 3), after, parked("b", 8), parked("d", 1), parked("e", 1)})
		b.All()[0].Last = Unbegun
		verdicts := slices.Repeat([]store.Verdict{{Kind: store.Fresh}}, 8)
		verdicts[7].Kind = store.Seen
		b.Judge(verdicts)
		if verdicts[4] != (store.Verdict{Kind: store.Gap, Missing: 1}) {
			t.Errorf("the one behind is %v", verdicts[4])
		}
		var begun []string
		for _, s := range b.Begun([]int{6}) {
			begun = append(begun, fmt.Sprint(string(s.Name), s.Last))
		}
		if !slices.Equal(begun, []string{"a4", "c2"}) {
			t.Errorf("begun: %v", begun)
		}
		if _, moved := b.End(store.Ending{Trim: []int{4, 6}}); len(moved) != 1 || moved[0].Last != 7 || moved[0].Was != 7 {
			t.Errorf("%+v", moved)
		}
	})
	t.Run("B4_without_versions_there_is_nothing_to_judge", func(t *testing.T) {
		b := Of([]store.Mark{{Scope: 1, As: applied}, {Scope: 1, As: applied, Version: versions.Position{Stream: []byte("a"), Number: 1, Start: 1}}})
		if e, moved := b.End(store.Ending{Trim: []int{1}}); b != nil || len(b.All()) != 0 || moved != nil || len(e.Trim) != 1 || b.Came() {
			t.Errorf("%+v", b)
		}
	})
}
