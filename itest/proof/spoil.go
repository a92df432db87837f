package proof

import "testing"

// Spoil holds that a good ledger is a proof, and none with anything wrong in it:
// each check of its Fault has a change here that only that check sees.
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
