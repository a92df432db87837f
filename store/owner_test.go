package store

import (
	"testing"

	"github.com/semel-go/semel"
)

func TestTheOwnerOfAMarker(t *testing.T) {
	print := func(n byte) semel.Fingerprint { return semel.Fingerprint{Version: 1, Sum: [16]byte{n}} }
	first := StoredRow{Number: 1, State: StateParked, Fingerprint: print(1)}
	second := StoredRow{Number: 2, State: StateReceived, Fingerprint: print(2), Conflict: true}
	copied := StoredRow{Number: 3, State: StateParked, Fingerprint: print(1), Conflict: true}
	unnamed := StoredRow{Number: 4, State: StateParked, Fingerprint: print(1), Surrogate: true}
	for name, want := range map[string]struct {
		marker StoredMarker
		rows   []StoredRow
		number int64
	}{
		"law_16_it_belongs_to_the_first_content":           {StoredMarker{Outcome: Parked, Fingerprint: print(1)}, []StoredRow{first, second}, 1},
		"law_16_it_belongs_to_a_conflict_that_was_let_run": {StoredMarker{Outcome: Waiting, Fingerprint: print(2)}, []StoredRow{first, second}, 2},
		"law_16_of_two_with_one_content_the_first_has_it":  {StoredMarker{Outcome: Parked, Fingerprint: print(1)}, []StoredRow{copied, first}, 1},
		"law_16_or_the_one_whose_state_it_tells": {StoredMarker{Outcome: Waiting, Fingerprint: print(1)},
			[]StoredRow{first, {Number: 3, State: StateReceived, Fingerprint: print(1), Conflict: true}}, 3},
		"law_16_it_may_belong_to_none_that_is_left":       {StoredMarker{Outcome: Applied, Fingerprint: print(9)}, []StoredRow{first, second}, 0},
		"law_16_what_has_no_identity_of_its_own_has_none": {StoredMarker{Outcome: Parked, Fingerprint: print(1)}, []StoredRow{unnamed}, 0},
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
