package sqlform

import (
	"bytes"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestAnswersOfATableOfDays(t *testing.T) {
	print := semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	t.Run("trap_88_what_lies_outside_is_old_or_ahead_and_nothing_else_is", func(t *testing.T) {
		for n, want := range map[int64]Answer{
			-1:  {Verdict: store.Verdict{Kind: store.Old}},
			-2:  {Verdict: store.Verdict{Kind: store.Old, Ahead: true}},
			-3:  {Verdict: store.Verdict{Kind: store.Old, Ahead: true}, Unready: true},
			1:   {Verdict: store.Verdict{Kind: store.Seen, Was: store.Applied}},
			259: {Verdict: store.Verdict{Kind: store.Seen, Was: store.Parked}, Aside: true},
			6:   {Verdict: store.Verdict{Kind: store.Newer, Was: 6}},
			262: {Verdict: store.Verdict{Kind: store.Newer, Was: 6}, Aside: true},
		} {
			if got := (Marker{Outcome: n}).Judged(Crypt{}, &Mark{Mark: &store.Mark{Fingerprint: print}}); got != want {
				t.Errorf("%d is %+v, want %+v", n, got, want)
			}
		}
	})
	t.Run("trap_88_what_stands_aside_has_its_own_key_and_its_id", func(t *testing.T) {
		for _, id := range []string{"a", "0190a5e2-7d0b-7c3e-8f00-0123456789ab"} {
			key, _ := ID([]byte(id))
			m := Mark{Key: key}
			m.SetAside()
			m.SetAside()
			if got, ok := OriginalID(m.Key, nil); !ok || got != id || bytes.Equal(m.Key, key) || !bytes.Equal(InnerKey(m.Key), key) {
				t.Errorf("%q has the key %x and is read back as %q", id, m.Key, got)
			}
		}
	})
}
