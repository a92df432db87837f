package sqlform

import (
	"bytes"
	"testing"

	"github.com/semel-go/semel/store"
)

func TestARowWhoseContentWasMarkedWhileAnotherTookEffect(t *testing.T) {
	t.Run("law_16_is_not_completed", func(t *testing.T) {
		applied := Marker{Outcome: int64(store.Applied), Version: 1, Sum: []byte{1}}
		twin := Twin{Number: 2, State: store.StateCompleted, Conflict: true, Version: 1, Sum: []byte{2}}
		if e, why := Over(true, applied, true, []Twin{twin}); e != store.StateDiscarded || why == "" {
			t.Errorf("it is %s: %q, want discarded", e, why)
		}
		twin.State = store.StateDiscarded
		if e, _ := Over(true, applied, true, []Twin{twin}); e != store.StateCompleted {
			t.Errorf("where no other took effect it is %s, want completed", e)
		}
	})
}

func TestAMarkerThatAConflictOwned(t *testing.T) {
	closed := Marker{Outcome: int64(store.Discarded), Version: 1, Sum: []byte{2}}
	conflict := Twin{Number: 3, State: store.StateParked, Conflict: true, Version: 1, Sum: []byte{3}}
	first := Twin{Number: 4, State: store.StateParked, Version: 1, Sum: []byte{1}}
	for name, c := range map[string]struct {
		others []Twin
		want   Marker
	}{
		"law_16_is_never_given_to_another_conflict":             {[]Twin{conflict}, closed},
		"law_16_goes_back_to_the_first_content_whatever_number": {[]Twin{conflict, first}, Marker{Outcome: int64(store.Parked), Version: 1, Sum: first.Sum}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Returned(closed, c.others); got.Outcome != c.want.Outcome || got.Version != c.want.Version || !bytes.Equal(got.Sum, c.want.Sum) {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestOwnerOfAMarker(t *testing.T) {
	marker := Marker{Outcome: int64(store.Parked), Version: 1, Sum: []byte{1}}
	first := Twin{Number: 1, State: store.StateParked, Version: 1, Sum: []byte{1}}
	conflict := Twin{Number: 2, State: store.StateParked, Conflict: true, Version: 1, Sum: []byte{2}}
	same, waiting := conflict, conflict
	same.Sum = first.Sum
	waiting.Sum, waiting.State = first.Sum, store.StateReceived
	for name, c := range map[string]struct {
		row    Twin
		others []Twin
		want   bool
	}{
		"law_16_it_belongs_to_the_row_of_its_content":         {first, []Twin{conflict}, true},
		"law_16_and_to_no_row_of_another_content":             {conflict, []Twin{first}, false},
		"law_16_nor_to_one_that_is_the_only_row":              {conflict, nil, false},
		"law_16_of_two_with_its_content_to_the_one_it_tells":  {first, []Twin{waiting}, true},
		"law_16_and_not_to_the_one_that_it_does_not_tell":     {waiting, []Twin{first}, false},
		"law_16_of_two_that_it_tells_to_the_first":            {first, []Twin{same}, true},
		"law_16_and_not_to_the_conflict_of_two_that_it_tells": {same, []Twin{first}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := marker.Of(c.row, c.others); got != c.want {
				t.Errorf("it is its: %v", got)
			}
		})
	}
}

func TestStoredTwins(t *testing.T) {
	t.Run("law_16_which_took_effect_in_part_or_perhaps", func(t *testing.T) {
		rows := StoredTwins([]Twin{{Number: 1}, {Number: 2, Stepped: true}, {Number: 3, UnknownOutcome: true, Conflict: true, State: store.StateParked}})
		for i, want := range []struct{ stepped, unknown bool }{{}, {true, false}, {false, true}} {
			if r := rows[i]; r.Number != int64(i+1) || len(r.Steps) > 0 != want.stepped || r.UnknownOutcome() != want.unknown {
				t.Errorf("row %d has %d steps, and a call of unknown outcome: %v", r.Number, len(r.Steps), r.UnknownOutcome())
			}
		}
		if !rows[2].Conflict || rows[2].State != store.StateParked {
			t.Errorf("%+v", rows[2])
		}
	})
}

func TestAClaimedRowBesideAnotherThatWaits(t *testing.T) {
	waits := Marker{Outcome: int64(store.Waiting), Version: 1, Sum: []byte{2}}
	twin := Twin{Number: 2, State: store.StateReceived, Version: 1, Sum: []byte{2}}
	for name, c := range map[string]struct {
		state store.RowState
		sum   byte
		want  store.RowState
	}{
		"law_16_is_parked_while_the_other_has_the_marker": {store.StateReceived, 2, store.StateParked},
		"law_16_takes_the_marker_of_one_that_has_ended":   {store.StateDiscarded, 2, ""},
		"law_16_takes_the_marker_that_no_other_row_has":   {store.StateReceived, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			twin.State, twin.Sum = c.state, []byte{c.sum}
			if got, why := Over(true, waits, false, []Twin{twin}); got != c.want {
				t.Errorf("it is %s (%s), want %s", got, why, c.want)
			}
		})
	}
}

func TestAClaimedRowWhoseMarkerDoesNotWait(t *testing.T) {
	applied, parked := Marker{Outcome: int64(store.Applied)}, Marker{Outcome: int64(store.Parked)}
	for name, c := range map[string]struct {
		marked bool
		marker Marker
		own    bool
		want   store.RowState
	}{
		"law_16_is_parked_where_there_is_no_marker":         {false, Marker{}, false, store.StateParked},
		"law_16_is_discarded_where_another_content_applied": {true, applied, false, store.StateDiscarded},
		"law_16_is_completed_where_its_own_content_applied": {true, applied, true, store.StateCompleted},
		"law_16_is_parked_where_the_marker_says_parked":     {true, parked, true, store.StateParked},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := Over(c.marked, c.marker, c.own, nil)
			if got != c.want || why == "" != (c.want == store.StateCompleted) {
				t.Errorf("it is %s (%s), want %s", got, why, c.want)
			}
			if reason := OverReason(got); reason == "" != (c.want == store.StateCompleted) {
				t.Errorf("its reason is %q", reason)
			}
		})
	}
}
