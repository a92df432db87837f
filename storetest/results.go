package storetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// hasResults reports whether the store can write and read results.
func hasResults[Tx any](st store.TxStore[Tx]) bool {
	_, keeps := st.(admin.Results[Tx])
	return keeps
}

// keeps stores a result for mark i of a batch, in the transaction of the mark.
func (h *fixture[Tx]) keeps(b store.Batch[Tx], i int, m store.Mark, result []byte) {
	h.t.Helper()
	h.t.must(h.Store.(admin.Results[Tx]).KeepResult(h.t.context(), b.Tx(i), admin.ResultOf{Scope: m.Scope, ID: m.ID}, result))
}

// wantResults checks the stored results of marks; nil means that no result is stored.
func (h *fixture[Tx]) wantResults(marks []store.Mark, want ...[]byte) {
	h.t.Helper()
	of := make([]admin.ResultOf, len(marks))
	for i, m := range marks {
		of[i] = admin.ResultOf{Scope: m.Scope, ID: m.ID}
	}
	got, err := h.Store.(admin.Results[Tx]).Results(h.t.context(), of)
	h.t.must(err)
	if len(got) != len(want) {
		h.t.Fatalf("%d results of %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) || (got[i] == nil) != (want[i] == nil) {
			h.t.Errorf("the result of %.40q is %.40q (nil: %t), want %.40q (nil: %t)", marks[i].ID, got[i], got[i] == nil, want[i], want[i] == nil)
		}
	}
}

// testResults tests results that are stored with markers.
func (s suite[Tx]) testResults(t *T) {
	s.run(t, "C12_a_result_commits_with_its_effect",
		"A result commits or rolls back with the transaction that wrote it.", func(t *T, h *fixture[Tx]) {
			marks := h.markAll("a", "b", "c")
			b, _ := h.begin(marks...)
			h.keeps(b, 0, marks[0], []byte("lost"))
			h.wantResults(marks, nil, nil, nil)
			b.Rollback(t.context())
			h.wantResults(marks, nil, nil, nil)
			b, _ = h.begin(marks...)
			for i := range marks {
				h.t.must(h.Effect(t.context(), b.Tx(i), "effect"))
			}
			h.keeps(b, 0, marks[0], []byte("made"))
			h.keeps(b, 2, marks[2], []byte("first"))
			h.keeps(b, 2, marks[2], []byte("second"))
			h.commit(b, store.Ending{})
			h.wantCount("effect", 3)
			h.wantResults(marks, []byte("made"), nil, []byte("second"))
		})
	s.run(t, "C12_a_result_may_be_kept_by_the_commit",
		"A batch that writes results when it commits writes all of them, and only then.", func(t *T, h *fixture[Tx]) {
			marks := h.markAll("a", "b", "c")
			b, _ := h.begin(marks...)
			end, able := b.(admin.CommitResultWriter)
			defer b.Rollback(t.context())
			if !able {
				return
			}
			of := func(i int) admin.ResultOf { return admin.ResultOf{Scope: marks[i].Scope, ID: marks[i].ID} }
			end.WriteResultAtCommit(of(0), []byte("lost"))
			h.wantResults(marks, nil, nil, nil)
			b.Rollback(t.context())
			h.wantResults(marks, nil, nil, nil)
			b, _ = h.begin(marks...)
			h.t.must(h.Effect(t.context(), b.Tx(0), "effect"))
			h.keeps(b, 1, marks[1], []byte("before"))
			end = b.(admin.CommitResultWriter)
			for i, result := range map[int]string{0: "first", 1: "after", 2: ""} {
				end.WriteResultAtCommit(of(i), []byte(result))
			}
			end.WriteResultAtCommit(of(0), []byte("made"))
			h.commit(b, store.Ending{})
			h.wantCount("effect", 1)
			h.wantResults(marks, []byte("made"), []byte("after"), []byte{})
		})
	s.run(t, "C12_a_result_is_any_bytes_of_its_own_identity",
		"A result comes back unchanged, for the scope and the id of its mark only.", func(t *T, h *fixture[Tx]) {
			longest := semel.MaxID
			if s.h.Can.LongestID > 0 {
				longest = s.h.Can.LongestID
			}
			marks := h.markAll("large", "empty", "\"quoted\\", strings.Repeat("x", longest), "00000000-0000-0000-0000-000000000001")
			want := [][]byte{manyBytes(admin.MaxResult), {}, []byte("a\x00b\xff"), []byte("long"), []byte("uuid")}
			b, _ := h.begin(marks...)
			for i := range marks {
				h.keeps(b, i, marks[i], want[i])
			}
			h.commit(b, store.Ending{})
			h.wantResults(marks, want...)
			if !s.h.Can.OneConsumer {
				other := marks[0]
				other.Scope = h.scopeOf("shipping", "shop", 0)
				h.wantResults([]store.Mark{other, marks[1]}, nil, []byte{})
			}
			h.wantResults(nil)
		})
	if s.h.Can.Leases {
		s.run(t, "law_5_a_claim_that_was_lost_keeps_no_result", "A result that was written under a lost claim is not kept.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			m := h.asking(c)
			b, _ := h.begin(m)
			h.keeps(b, 0, m, []byte("stale"))
			stale := store.Claim{Number: c.Number, Token: store.NewToken()}
			if r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: stale, State: store.StateCompleted, Ran: true}}}); r.Class != store.ClassClaimLost {
				t.Errorf("%+v", r)
			}
			h.wantResults([]store.Mark{m}, nil)
			b, _ = h.begin(m)
			h.keeps(b, 0, m, []byte("made"))
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateCompleted, Ran: true}}})
			h.wantResults([]store.Mark{m}, []byte("made"))
		})
	}
	if s.h.Can.Retention && !s.h.Can.Days {
		s.run(t, "H3_a_result_is_removed_with_its_marker",
			"The reaper removes an identity with its result, and in a dry run only counts it.", func(t *T, h *fixture[Tx]) {
				marks := []store.Mark{h.contentMark("a", 1), h.contentMark("b", 1)}
				b, _ := h.begin(marks...)
				for i := range marks {
					h.keeps(b, i, marks[i], []byte("made"))
				}
				h.commit(b, store.Ending{})
				h.retain(store.Retention{Keep: shortRetention})
				h.wantResults(marks, []byte("made"), []byte("made"))
				h.reaped(2)
				h.wantResults(marks, nil, nil)
			})
	}
}

// saveNote stores a note (a request) with a key.
func (h *keyFixture) saveNote(id string, t store.Token, note string) error {
	h.t.Helper()
	err := h.Store.(admin.RequestStore).SaveRequest(h.t.context(), keyOf(id), t, []byte(note))
	if err != nil && !errors.Is(err, store.ErrClaimLost) {
		h.t.Fatal(err)
	}
	return err
}

// abandonedKeys returns the abandoned keys with their notes, and checks that each call of the store respects its
// limits.
func (h *keyFixture) abandonedKeys(of admin.AbandonedKeysQuery) map[string]admin.AbandonedKey {
	h.t.Helper()
	all := map[string]admin.AbandonedKey{}
	for range 100 {
		some, err := h.Store.(admin.RequestStore).AbandonedKeys(h.t.context(), of)
		h.t.must(err)
		if len(some.Keys) > of.Most {
			h.t.Errorf("%d abandoned keys, but only %d keys were to be looked at", len(some.Keys), of.Most)
		}
		for _, k := range some.Keys {
			if _, twice := all[k.Key.ID]; twice || k.Key.Consumer != of.Consumer || k.Key.Source != "shop" {
				h.t.Errorf("%+v, twice: %t", k, twice)
			}
			all[k.Key.ID] = k
		}
		if of.After = some.Next; of.After == nil {
			return all
		}
	}
	h.t.Fatalf("the walk does not end")
	return nil
}

// wantLeft checks the ids of the abandoned keys.
func (h *keyFixture) wantLeft(want ...string) {
	h.t.Helper()
	var ids []string
	for id := range h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100}) {
		ids = append(ids, id)
	}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		h.t.Errorf("%q are left, want %q", ids, want)
	}
}

// keyNotes tests notes (stored requests), if the store supports notes.
func keyNotes(run runKeyCase) {
	able := func(name, law string, f func(h *keyFixture)) {
		run(name, law, func(h *keyFixture) {
			if _, keeps := h.Store.(admin.RequestStore); keeps {
				f(h)
			}
		})
	}
	able("F2_an_abandoned_key_is_found_with_its_note", "An abandoned key is found with its note once its lease ended long enough ago, and never while a worker holds it.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.saveNote("a", token, "first"))
		h.t.must(h.saveNote("a", token, "of a"))
		h.want("without a note", keystore.Claimed)
		h.wantLeft()
		h.Pass(h.t, 2*keyLease)
		h.wantLeft("a")
		k := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]
		if string(k.Note) != "of a" || k.Started != 1 || k.Quiet < keyLease/2 || k.Quiet > keyKeep {
			h.t.Errorf("%+v", k)
		}
		for _, quiet := range []time.Duration{10 * keyLease, keyKeep} { // the second duration finds a store that uses a wrong unit
			if all := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Quiet: quiet, Most: 100}); len(all) > 0 {
				h.t.Errorf("%v is abandoned for %v", all, quiet)
			}
		}
		if all := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "shipping", Most: 100}); len(all) > 0 {
			h.t.Errorf("%v is abandoned by another consumer", all)
		}
		h.want("a", keystore.Claimed)
		h.wantLeft()
		h.Pass(h.t, 2*keyLease)
		if k := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]; string(k.Note) != "of a" || k.Started != 2 {
			h.t.Errorf("after another claim the key is %+v", k)
		}
	})
	able("F2_a_note_is_removed_when_its_key_ends", "A note is kept while the outcome of a claim is unknown, and removed by every other end; a result is not a note.", func(h *keyFixture) {
		for id, e := range map[string]keystore.Event{"abandoned": keystore.Abandon, "released": keystore.Release, "completed": keystore.Complete, "failed": keystore.Fail, "forgotten": keystore.Forget} {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.saveNote(id, token, "a note"))
			h.t.must(h.end(id, token, e, ""))
			if h.saveNote(id, token, "too late") == nil {
				h.t.Errorf("%s, a key accepts a note", id)
			}
		}
		again, _ := h.want("abandoned", keystore.Claimed)
		h.t.must(h.end("abandoned", again, keystore.Release, "")) // the outcome of the first claim is still unknown
		h.Pass(h.t, 2*keyLease)
		h.wantLeft("abandoned")
		if _, a := h.want("completed", keystore.Completed); len(a.Result) > 0 {
			h.t.Errorf("the result is %q", a.Result)
		}
		token, a := h.want("abandoned", keystore.Claimed)
		h.t.must(h.end("abandoned", token, keystore.Complete, "made"))
		if a.Result != nil {
			h.t.Errorf("a claim returns %q", a.Result)
		}
		if _, a := h.want("abandoned", keystore.Completed); string(a.Result) != "made" {
			h.t.Errorf("the result is %q", a.Result)
		}
		h.want("released", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		h.wantLeft()
	})
	able("F2_a_key_is_claimed_only_if_unchanged_since_it_was_listed", "A claim with Seen is granted only if the key has not been claimed since it was listed, and never creates a key.", func(h *keyFixture) {
		seen := func(id string, started int) (store.Token, keystore.Answer) {
			h.t.Helper()
			c := keystore.Claim{Key: keyOf(id), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep, Seen: started}
			a := h.ask(c)
			if again := h.ask(c); again.State != a.State || again.Started != a.Started { // the first response may be lost
				h.t.Errorf("%+v, and asked again %+v", a, again)
			}
			return c.Token, a
		}
		for _, id := range []string{"a", "forgotten", "again"} {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.saveNote(id, token, "a note"))
			h.t.must(h.end(id, token, keystore.Abandon, ""))
		}
		token, a := seen("a", 1)
		if a.State != keystore.Claimed || a.Started != 2 || !a.Unknown() {
			h.t.Errorf("unchanged since it was listed: %+v", a)
		}
		h.t.must(h.end("a", token, keystore.Complete, "made"))
		if _, a := seen("a", 1); a.State != keystore.Completed || string(a.Result) != "made" {
			h.t.Errorf("completed since: %+v", a)
		}
		token, _ = h.want("again", keystore.Claimed)
		if _, a := seen("again", 1); a.State != keystore.Held {
			h.t.Errorf("under way: %+v", a)
		}
		h.t.must(h.end("again", token, keystore.Abandon, ""))
		if _, a := seen("again", 1); a.State != keystore.Gone {
			h.t.Errorf("tried since: %+v", a)
		}
		if _, a := h.want("again", keystore.Claimed); a.Started != 3 {
			h.t.Errorf("after a claim that was not granted: %+v", a)
		}
		token, _ = h.want("forgotten", keystore.Claimed)
		h.t.must(h.end("forgotten", token, keystore.Forget, ""))
		if _, a := seen("forgotten", 2); a.State != keystore.Gone || a.Started != 0 {
			h.t.Errorf("forgotten since: %+v", a)
		}
		if _, a := h.want("forgotten", keystore.Claimed); a.Started != 1 {
			h.t.Errorf("the key was created: %+v", a)
		}
	})
	able("law_5_a_claim_that_was_lost_notes_nothing", "Only the holder of a key can store a note for it.", func(h *keyFixture) {
		stale, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.saveNote("a", token, "right"))
		if h.saveNote("a", stale, "stale") == nil || h.saveNote("never claimed", stale, "stale") == nil {
			h.t.Error("a stale token stores a note")
		}
		h.Pass(h.t, 2*keyLease)
		if k := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]; string(k.Note) != "right" {
			h.t.Errorf("it is %+v", k)
		}
	})
	able("F2_the_walk_is_bounded_and_misses_nothing", "Each call looks at a limited number of keys, and the next call continues after them.", func(h *keyFixture) {
		ids := map[string]bool{"a": true, "b\x00": true, "\xff": true, "d": true, "e": true}
		for id := range ids {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.saveNote(id, token, "note of "+id))
		}
		h.ask(keystore.Claim{Key: semel.Key{Consumer: "shipping", Source: "shop", ID: "f"}, Token: store.NewToken(), Lease: keyLease, Keep: keyKeep})
		h.Pass(h.t, 2*keyLease)
		for _, most := range []int{1, 2, 5, 6, 7} {
			all := h.abandonedKeys(admin.AbandonedKeysQuery{Consumer: "billing", Most: most})
			for id := range ids {
				if string(all[id].Note) != "note of "+id {
					h.t.Errorf("with %d keys a call, %q is %+v", most, id, all[id])
				}
			}
		}
	})
	able("F2_a_note_has_a_limit", "A note can be as long as a result but no longer, and not empty.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.saveNote("a", token, string(manyBytes(keystore.MaxResult))))
		for _, note := range [][]byte{nil, make([]byte, keystore.MaxResult+1)} {
			if err := h.Store.(admin.RequestStore).SaveRequest(h.t.context(), keyOf("a"), token, note); err == nil {
				h.t.Errorf("a note of %d bytes is kept", len(note))
			}
		}
	})
}
