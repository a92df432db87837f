package proof

import "testing"

// Spoil checks that a good ledger is a proof, and that it is none after any of the changes.
// Each check in Fault has a change here that only that check detects.
func Spoil[L Ledger](t *testing.T, good L, changes map[string]func(*L)) {
	t.Helper()
	if err := good.Fault(); err != nil {
		t.Error(err)
	}
	for name, change := range changes {
		bad := good
		change(&bad)
		if bad.Fault() == nil {
			t.Errorf("%s: %+v passes", name, bad)
		}
	}
}
