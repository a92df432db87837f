package proof

import "testing"

// Spoil checks that Fault accepts the good ledger and rejects the ledger after each of the changes. For each
// check in Fault there should be a change that only this check detects.
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
