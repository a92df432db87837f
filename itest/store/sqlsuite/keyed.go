package sqlsuite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// testKeyedFingerprints checks the fingerprints of an encrypted store. A person without the key must not be able to
// verify a guessed content with a stored hash. The store must still recognise contents.
func testKeyedFingerprints[Tx any](t *testing.T, e Encrypting[Tx]) {
	long := time.Now().Add(-time.Hour)
	t.Run("P4_no_hash_of_a_content_is_kept_by_which_it_could_be_guessed", func(t *testing.T) {
		pins := []string{"4711", "4712", "4713", "4714", "4715", "4716"}
		keepPins[Tx](t, e.Open(t, CipherOf(t, 1), time.Time{}), "plain", pins)
		if found := e.Where(t, allHashes(t, pins)); len(found) == 0 {
			t.Fatal("the situation did not occur: no hash is found where encryption is not required")
		}
		for i := range pins {
			pins[i] = "9" + pins[i]
		}
		keepPins[Tx](t, e.Open(t, CipherOf(t, 1), long), "keyed", pins)
		if found := e.Where(t, allHashes(t, pins)); len(found) > 0 {
			t.Errorf("hashes of %q can be found in %q", pins, found)
		}
	})
	for name, o := range map[string]struct {
		before, after       []byte
		sinceThen, sinceNow time.Time
	}{
		"under_the_same_key":                     {[]byte{1}, []byte{1}, long, long},
		"marked_without_a_key":                   {nil, []byte{1}, time.Time{}, long},
		"marked_before_encryption_was_required":  {[]byte{1}, []byte{1}, time.Time{}, long},
		"after_the_key_was_changed":              {[]byte{1, 2}, []byte{2, 1}, long, long},
		"by_a_process_that_writes_the_other_key": {[]byte{2, 1}, []byte{1, 2}, long, long},
		"by_a_process_that_writes_no_keyed_ones": {[]byte{1}, []byte{1}, long, time.Time{}},
	} {
		t.Run("law_10_contents_are_recognised_"+name, func(t *testing.T) {
			open := func(keys []byte, since time.Time) EncryptingStore[Tx] {
				if keys == nil {
					return e.Open(t, nil, since)
				}
				return e.Open(t, CipherOf(t, keys...), since)
			}
			before, after := open(o.before, o.sinceThen), open(o.after, o.sinceNow)
			back := before
			if o.before == nil { // this store does not have the encryption key of the other store
				back = after
			}
			testRecognised(t, before, after, back)
		})
	}
	t.Run("law_10_without_the_key_they_are_not_compared_and_a_copy_is_a_duplicate", func(t *testing.T) {
		before := e.Open(t, CipherOf(t, 1), long)
		m := withFingerprint(Marks[Tx](t, before, "shop", "not compared")[0], "a")
		b, _ := Begin(t, before, store.TxOptions{}, []store.Mark{m})
		commitBatch(t, b)
		for name, s := range map[string]EncryptingStore[Tx]{"another key": e.Open(t, CipherOf(t, 2), long), "no key": e.Open(t, nil, time.Time{})} {
			if v := Asked(t, s, m)[0]; !v.Already(store.Applied) {
				t.Errorf("with %s a copy is %v", name, v)
			}
		}
	})
}

func withFingerprint(m store.Mark, body string) store.Mark {
	m.Fingerprint, _ = identity.FingerprintBody().Fingerprint(&semel.Message{Body: []byte(body)})
	return m
}

// allHashes returns all encodings in which a store could keep hashes of the given bodies.
func allHashes(t testing.TB, bodies []string) (all [][]byte) {
	t.Helper()
	for _, body := range bodies {
		print, whole := withFingerprint(store.Mark{}, body).Fingerprint.Sum, sha256.Sum256([]byte(body))
		for _, sum := range [][]byte{print[:], whole[:]} {
			all = append(all, Forms(string(sum))...)
		}
	}
	return all
}

// keepPins stores each body in another way: as a parked and edited message, as a conflict of this message, as
// the last version of a stream, as a waiting message, as the content of a leased key, and as an edit.
func keepPins[Tx any](t testing.TB, s EncryptingStore[Tx], name string, pins []string) {
	t.Helper()
	ids := []string{name + " 0", name + " 0", name + " 1", name + " 2"}
	marks := Marks[Tx](t, s, "shop", ids...)
	for i := range marks {
		marks[i] = withFingerprint(marks[i], pins[i])
	}
	row := func(m store.Mark, r store.Row) {
		r.Message = &semel.Message{Body: []byte("1")}
		b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{m})
		if result := b.Commit(t.Context(), store.Ending{Rows: []store.Row{r}}); result.Outcome != store.Committed {
			t.Fatalf("%+v", result)
		}
	}
	marks[0].As, marks[3].As = store.Parked, store.Waiting
	row(marks[0], store.Row{State: store.StateParked})
	row(marks[1], store.Row{State: store.StateParked, Conflict: true})
	marks[2].Version = versions.Position{Stream: []byte(name), Number: 1, Asks: true}
	b, _ := Begin(t, s, store.TxOptions{}, marks[2:3])
	commitBatch(t, b)
	row(marks[3], store.Row{State: store.StateReceived})
	if keys, is := any(s).(keystore.Store); is {
		claim := keystore.Claim{Key: semel.Key{Consumer: "billing", ID: name}, Fingerprint: withFingerprint(store.Mark{}, pins[4]).Fingerprint, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}
		must.Get(keys.ClaimKey(t.Context(), claim))(t)
	}
	if editor, is := any(s).(admin.Editor); is {
		rows := must.Get(s.Rows(t.Context(), store.RowFilter{IDs: []string{ids[0]}}))(t)
		must.OK(t, editor.Edit(t.Context(), rows[0].Number, rows[0].Revision, []byte(pins[5]), "", store.Act{Verb: "edit", Who: "ana", Why: "ticket 7"}))
		edits, err := editor.Edits(t.Context(), rows[0].Number, false)
		if err != nil || len(edits) != 1 || edits[0].After != sha256.Sum256([]byte(pins[5])) || edits[0].Before != sha256.Sum256([]byte("1")) {
			t.Errorf("the edits are %+v, %v", edits, err)
		}
	}
}

// testRecognised stores contents with one store, and checks that another store recognises these contents.
// Equal contents must be duplicates, other contents must be conflicts, and a repeated conflict must be counted in its
// row. The store back must recognise the contents that the other store wrote.
func testRecognised[Tx any](t *testing.T, before, after, back EncryptingStore[Tx]) {
	name := strings.ReplaceAll(t.Name(), "/", " ")
	marks := Marks[Tx](t, before, "shop", name+" applied", name+" waits", name+" version")
	applied, other, third := withFingerprint(marks[0], "a"), withFingerprint(marks[0], "b"), withFingerprint(marks[0], "c")
	waits, version := withFingerprint(marks[1], "a"), withFingerprint(marks[2], "a")
	waits.As = store.Waiting
	version.Version = versions.Position{Stream: []byte(name), Number: 1, Asks: true}
	b, _ := Begin(t, before, store.TxOptions{}, []store.Mark{applied, waits, version})
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{Mark: 1, State: store.StateReceived, Message: &semel.Message{Body: []byte("a")}}}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	conflict := func(s EncryptingStore[Tx], m store.Mark, known bool) {
		t.Helper()
		b, v := Begin(t, s, store.TxOptions{}, []store.Mark{m})
		if v[0] != (store.Verdict{Kind: store.Conflict, Known: known}) {
			t.Errorf("%.4x is %+v, want a conflict, known %v", m.Fingerprint.Sum, v[0], known)
		}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Conflict: true, Repeat: v[0].Known, Message: &semel.Message{Body: []byte("b")}}}}); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
	}
	conflict(before, other, false)
	for who, s := range map[string]EncryptingStore[Tx]{"the store that marked it": before, "the other store": after} {
		if v := Asked(t, s, applied)[0]; !v.Already(store.Applied) {
			t.Errorf("to %s a copy is %v", who, v)
		}
	}
	if v := Asked(t, after, waits)[0]; !v.Already(store.Waiting) {
		t.Errorf("a copy of a waiting message is %v", v)
	}
	again := version
	again.ID = []byte(name + " another id of that version")
	if v := Asked(t, after, again)[0]; v != (store.Verdict{Kind: store.Stale}) {
		t.Errorf("the content of the last version is %+v", v)
	}
	again.Fingerprint = other.Fingerprint
	if v := Asked(t, after, again)[0]; v != (store.Verdict{Kind: store.Stale, Known: true}) {
		t.Errorf("another content of the last version is %+v", v)
	}
	conflict(after, other, true)
	conflict(after, third, false)
	conflict(back, third, true)
	rows, err := after.Rows(t.Context(), store.RowFilter{IDs: []string{string(applied.ID)}})
	if err != nil || len(rows) != 2 || rows[0].Repeated != 1 || rows[1].Repeated != 1 || rows[0].Fingerprint != other.Fingerprint || rows[1].Fingerprint != third.Fingerprint {
		t.Errorf("%+v, %v", rows, err)
	}
	claimedBy(t, after, waits)
	sameKey(t, before, after, name, applied.Fingerprint, other.Fingerprint)
}

// claimedBy makes a store process the row of a waiting message.
func claimedBy[Tx any](t *testing.T, s EncryptingStore[Tx], m store.Mark) {
	t.Helper()
	rows, err := s.Rows(t.Context(), store.RowFilter{IDs: []string{string(m.ID)}})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	claims, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{rows[0].Number}, Most: 1, Lease: time.Minute})
	if err != nil || len(claims) != 1 {
		t.Fatalf("%+v, %v", claims, err)
	}
	m.As, m.Claim = store.Applied, claims[0].Claim
	b, v := Begin(t, s, store.TxOptions{}, []store.Mark{m})
	if v[0].Kind != store.Fresh {
		t.Errorf("the claim of the row that waits is %+v", v[0])
	}
	if r := b.Commit(t.Context(), store.Ending{Claims: []store.ClaimEnding{{Claim: m.Claim, State: store.StateCompleted, Ran: true}}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	m.Claim = store.Claim{}
	if v := Asked(t, s, m)[0]; !v.Already(store.Applied) {
		t.Errorf("after its row was handled a copy is %v", v)
	}
}

// sameKey claims a leased key with one store. The other store must distinguish the key's content from another content.
func sameKey(t *testing.T, before, after any, name string, own, other semel.Fingerprint) {
	t.Helper()
	first, is := before.(keystore.Store)
	if !is {
		return
	}
	key := keystore.Claim{Key: semel.Key{Consumer: "billing", ID: name}, Fingerprint: own, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}
	if a, err := first.ClaimKey(t.Context(), key); err != nil || a.State != keystore.Claimed {
		t.Fatalf("%+v, %v", a, err)
	}
	for print, want := range map[semel.Fingerprint]keystore.State{own: keystore.Held, other: keystore.Conflict} {
		key.Token, key.Fingerprint = store.NewToken(), print
		if a, err := after.(keystore.Store).ClaimKey(t.Context(), key); err != nil || a.State != want {
			t.Errorf("a claim with the content %s is %+v, %v, want %v", hex.EncodeToString(print.Sum[:2]), a, err, fmt.Sprint(want))
		}
	}
}
