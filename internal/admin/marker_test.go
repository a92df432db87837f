package admin

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestTheOwnerOfAMarker(t *testing.T) {
	print := func(n byte) semel.Fingerprint { return semel.Fingerprint{Version: 1, Sum: [16]byte{n}} }
	first := store.StoredRow{Number: 1, State: store.StateParked, Fingerprint: print(1)}
	second := store.StoredRow{Number: 2, State: store.StateReceived, Fingerprint: print(2), Conflict: true}
	copied := store.StoredRow{Number: 3, State: store.StateParked, Fingerprint: print(1), Conflict: true}
	unnamed := store.StoredRow{Number: 4, State: store.StateParked, Fingerprint: print(1), Surrogate: true}
	for name, want := range map[string]struct {
		marker StoredMarker
		rows   []store.StoredRow
		number int64
	}{
		"law_16_it_belongs_to_the_first_content":           {StoredMarker{Outcome: store.Parked, Fingerprint: print(1)}, []store.StoredRow{first, second}, 1},
		"law_16_it_belongs_to_a_conflict_that_was_let_run": {StoredMarker{Outcome: store.Waiting, Fingerprint: print(2)}, []store.StoredRow{first, second}, 2},
		"law_16_of_two_with_one_content_the_first_has_it":  {StoredMarker{Outcome: store.Parked, Fingerprint: print(1)}, []store.StoredRow{copied, first}, 1},
		"law_16_or_the_one_whose_state_it_tells": {StoredMarker{Outcome: store.Waiting, Fingerprint: print(1)},
			[]store.StoredRow{first, {Number: 3, State: store.StateReceived, Fingerprint: print(1), Conflict: true}}, 3},
		"law_16_it_may_belong_to_none_that_is_left":       {StoredMarker{Outcome: store.Applied, Fingerprint: print(9)}, []store.StoredRow{first, second}, 0},
		"law_16_what_has_no_identity_of_its_own_has_none": {StoredMarker{Outcome: store.Parked, Fingerprint: print(1)}, []store.StoredRow{unnamed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			number := int64(0)
			if owner := want.marker.Owner(want.rows); owner != nil {
				number = owner.Number
			}
			if number != want.number {
				t.Errorf("row %d, want %d", number, want.number)
			}
		})
	}
}
