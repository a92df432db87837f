package sqlite

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

func TestALeasedKeyIsToldToPeople(t *testing.T) {
	st := storeOn(t, openFile(t, newFile(t), pragmas))
	key := semel.Key{Consumer: "charging", Source: "shop", ID: "o-1"}
	token := store.NewToken()
	claim := keystore.Claim{Key: key, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{7}}, Token: token, Lease: time.Minute, Keep: time.Hour}
	if a, err := st.ClaimKey(t.Context(), claim); err != nil || a.State != keystore.Claimed {
		t.Fatalf("%+v, %v", a, err)
	}
	t.Run("K13_while_it_is_held", func(t *testing.T) {
		now, err := st.Clock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k, found, err := st.LeasedKey(t.Context(), key)
		if err != nil || !found || k.Ended != 0 || k.Started != 1 || k.Finished != 0 || k.Fingerprint != claim.Fingerprint {
			t.Errorf("%+v, %v, %v", k, found, err)
		}
		if left := k.Until.Sub(now); left < 50*time.Second || left > time.Minute {
			t.Errorf("%v are left of its lease", left)
		}
	})
	t.Run("K13_when_it_has_ended", func(t *testing.T) {
		if err := st.EndKey(t.Context(), key, token, keystore.Ending{Event: keystore.Complete, Result: []byte("done"), Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		k, found, err := st.LeasedKey(t.Context(), key)
		if err != nil || !found || k.Ended != keystore.Complete || !k.Result || k.Finished != 1 {
			t.Errorf("%+v, %v, %v", k, found, err)
		}
	})
	t.Run("K13_another_source_has_another_key", func(t *testing.T) {
		if k, found, err := st.LeasedKey(t.Context(), semel.Key{Consumer: "charging", ID: "o-1"}); err != nil || found {
			t.Errorf("%+v, %v", k, err)
		}
	})
}
