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
		if e, why := Over(true, applied, true, []Twin{twin}); e != store.RowDiscarded || why == "" {
			t.Errorf("it is %s: %q, want discarded", e, why)
		}
		twin.State = store.StateDiscarded
		if e, _ := Over(true, applied, true, []Twin{twin}); e != store.RowCompleted {
			t.Errorf("where no other took effect it is %s, want completed", e)
		}
	})
}

func TestAMarkerThatAConflictHad(t *testing.T) {
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
