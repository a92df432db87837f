package sqlform

import (
	"bytes"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/store"
)

// newRequiringCrypt returns a Crypt that writes keyed sums. The sums use the first key.
func newRequiringCrypt(t *testing.T, keys ...byte) Crypt {
	t.Helper()
	all := make([][]byte, len(keys))
	for i, k := range keys {
		all[i] = bytes.Repeat([]byte{k}, encryption.KeySize)
	}
	cipher, err := encryption.New(all[0], all[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return Crypt{Cipher: cipher, Keyed: true}
}

func newMark(id string, print semel.Fingerprint) *Mark {
	m := Marks([]store.Mark{{ID: []byte(id), Fingerprint: print}})[0]
	return &m
}

func TestKeyedFingerprints(t *testing.T) {
	print := semel.Fingerprint{Version: 255, Sum: [16]byte{1, 2, 3}}
	c := newRequiringCrypt(t, 1)
	version, sum := c.MarkPrint(newMark("a", print))
	t.Run("P4_their_version_is_one_that_an_earlier_release_takes_for_newer", func(t *testing.T) {
		if version <= 255 || bytes.Contains(sum, print.Sum[:4]) {
			t.Errorf("version %d, sum %x", version, sum)
		}
	})
	t.Run("P4_two_ids_with_one_content_have_different_ones_and_one_id_always_the_same", func(t *testing.T) {
		if _, again := c.MarkPrint(newMark("a", print)); !bytes.Equal(again, sum) {
			t.Errorf("%x, then %x", sum, again)
		}
		if _, other := c.MarkPrint(newMark("b", print)); bytes.Equal(other[4:], sum[4:]) {
			t.Errorf("the sum of another id is %x, too", sum)
		}
		aside := newMark("a", print)
		aside.SetAside()
		if _, again := c.MarkPrint(aside); !bytes.Equal(again, sum) {
			t.Errorf("aside it is %x, not %x", again, sum)
		}
	})
	t.Run("law_10_they_are_compared_by_who_has_the_key", func(t *testing.T) {
		other := print
		other.Sum[15]++
		there := Marker{Outcome: int64(store.Applied), Version: version, Sum: sum}
		for name, o := range map[string]struct {
			by    Crypt
			print semel.Fingerprint
			want  store.VerdictKind
		}{
			"a copy": {c, print, store.Seen}, "a copy, under a former key": {newRequiringCrypt(t, 2, 1), print, store.Seen},
			"another content": {c, other, store.Conflict}, "another content, under a former key": {newRequiringCrypt(t, 2, 1), other, store.Conflict},
			"a copy, without its key": {newRequiringCrypt(t, 2), print, store.Seen}, "another content, without a key": {Crypt{}, other, store.Seen},
		} {
			if v := there.Verdict(o.by, newMark("a", o.print)); v.Kind != o.want {
				t.Errorf("%s is %v, want %v", name, v, store.Verdict{Kind: o.want})
			}
		}
		strict := newMark("a", print)
		strict.Strict = true
		if v := there.Verdict(newRequiringCrypt(t, 2), strict); v.Kind != store.Conflict {
			t.Errorf("what must be compared and cannot is %v", v)
		}
	})
	t.Run("trap_T104_a_form_of_a_newer_release_is_no_conflict", func(t *testing.T) {
		for _, m := range []Marker{{Outcome: 1, Version: version, Sum: sum[1:]}, {Outcome: 1, Version: 256, Sum: sum}, {Outcome: 1, Version: 512, Sum: sum}} {
			if v := m.Verdict(c, newMark("a", print)); v.Kind != store.Newer {
				t.Errorf("%+v is %v", m, v)
			}
		}
	})
	t.Run("P4_without_a_cipher_nothing_changes", func(t *testing.T) {
		if version, sum := (Crypt{}).MarkPrint(newMark("a", print)); version != 255 || !bytes.Equal(sum, print.Sum[:]) {
			t.Errorf("version %d, sum %x", version, sum)
		}
		if version, sum := c.MarkPrint(newMark("a", semel.Fingerprint{})); version != 0 || sum != nil {
			t.Errorf("no fingerprint has version %d, sum %x", version, sum)
		}
	})
}

func BenchmarkMarkPrint(b *testing.B) {
	print := semel.Fingerprint{Version: 1, Sum: [16]byte{1, 2, 3}}
	cipher, err := encryption.New(make([]byte, encryption.KeySize))
	if err != nil {
		b.Fatal(err)
	}
	m := Marks([]store.Mark{{ID: []byte("0b0f3a6e-7f51-4cf5-8a43-5a4fd2d1b6f7"), Fingerprint: print}})[0]
	for name, c := range map[string]Crypt{"plain": {}, "keyed": {Cipher: cipher, Keyed: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.MarkPrint(&m)
			}
		})
	}
}
