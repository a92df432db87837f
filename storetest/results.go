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

// hasResults reports whether the store keeps results and tells them.
func hasResults[Tx any](st store.TxStore[Tx]) bool {
	_, keeps := st.(admin.Results[Tx])
	return keeps
}

// keeps keeps a result in the transaction of mark i of a batch.
func (h *fixture[Tx]) keeps(b store.Batch[Tx], i int, m store.Mark, result []byte) {
	h.t.Helper()
	h.t.must(h.Store.(admin.Results[Tx]).KeepResult(h.t.context(), b.Tx(i), admin.ResultOf{Scope: m.Scope, ID: m.ID}, result))
}

// wantResults asks what is kept of marks; nil stands for nothing.
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

// results are the laws of results that are kept beside markers.
func (s suite[Tx]) results(t *T) {
	s.run(t, "C12_a_result_is_there_exactly_when_its_effect_is",
		"A result shares the fate of the transaction that it was written in.", func(t *T, h *fixture[Tx]) {
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
		"A batch that keeps results by its commit keeps all of them, and only with it.", func(t *T, h *fixture[Tx]) {
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
		"A result comes back as it was given, under the scope and the id of its mark alone.", func(t *T, h *fixture[Tx]) {
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
		s.run(t, "law_5_a_claim_that_was_lost_keeps_no_result", "What is written under a claim that does not stand is not there.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			m := h.asking(c)
			b, _ := h.begin(m)
			h.keeps(b, 0, m, []byte("stale"))
			stale := store.Claim{Number: c.Number, Token: store.NewToken()}
			if r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: stale, Event: store.RowCompleted, Ran: true}}}); r.Class != store.ClassClaimLost {
				t.Errorf("%+v", r)
			}
			h.wantResults([]store.Mark{m}, nil)
			b, _ = h.begin(m)
			h.keeps(b, 0, m, []byte("made"))
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, Event: store.RowCompleted, Ran: true}}})
			h.wantResults([]store.Mark{m}, []byte("made"))
		})
	}
	if s.h.Can.Retention && !s.h.Can.Days {
		s.run(t, "H3_a_result_goes_with_its_marker",
			"What the reaper removes of an identity it removes whole, and it counts only if it is asked to.", func(t *T, h *fixture[Tx]) {
				marks := []store.Mark{h.print("a", 1), h.print("b", 1)}
				b, _ := h.begin(marks...)
				for i := range marks {
					h.keeps(b, i, marks[i], []byte("made"))
				}
				h.commit(b, store.Ending{})
				h.retain(store.Retention{Keep: soon})
				h.wantResults(marks, []byte("made"), []byte("made"))
				h.reaped(2)
				h.wantResults(marks, nil, nil)
			})
	}
}

// note notes something of a key.
func (h *keys) note(id string, t store.Token, note string) error {
	h.t.Helper()
	err := h.Store.(admin.RequestStore).SaveRequest(h.t.context(), keyOf(id), t, []byte(note))
	if err != nil && !errors.Is(err, store.ErrClaimLost) {
		h.t.Fatal(err)
	}
	return err
}

// left are the notes of keys that nobody works on, by key, with how many were claimed.
func (h *keys) left(of admin.AbandonedKeysQuery) map[string]admin.AbandonedKey {
	h.t.Helper()
	all := map[string]admin.AbandonedKey{}
	for range 100 {
		some, err := h.Store.(admin.RequestStore).AbandonedKeys(h.t.context(), of)
		h.t.must(err)
		if len(some.Keys) > of.Most {
			h.t.Errorf("%d keys of %d that were looked at", len(some.Keys), of.Most)
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
	h.t.Fatalf("the walk does not come to an end")
	return nil
}

// wantLeft checks which keys are left, by their ids.
func (h *keys) wantLeft(want ...string) {
	h.t.Helper()
	var ids []string
	for id := range h.left(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100}) {
		ids = append(ids, id)
	}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		h.t.Errorf("%q are left, want %q", ids, want)
	}
}

// keyNotes are the laws of notes, of a store that keeps them.
func keyNotes(run runKeyCase) {
	able := func(name, law string, f func(h *keys)) {
		run(name, law, func(h *keys) {
			if _, keeps := h.Store.(admin.RequestStore); keeps {
				f(h)
			}
		})
	}
	able("F2_what_is_left_is_found_with_its_note", "A key with a note is found when its lease has been over for long enough, and not while somebody works on it.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.note("a", token, "first"))
		h.t.must(h.note("a", token, "of a"))
		h.want("without a note", keystore.Claimed)
		h.wantLeft()
		h.Pass(h.t, 2*keyLease)
		h.wantLeft("a")
		k := h.left(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]
		if string(k.Note) != "of a" || k.Started != 1 || k.Quiet < keyLease/2 || k.Quiet > keyKeep {
			h.t.Errorf("%+v", k)
		}
		for _, quiet := range []time.Duration{10 * keyLease, keyKeep} { // one that a wrong unit makes too short, too
			if all := h.left(admin.AbandonedKeysQuery{Consumer: "billing", Quiet: quiet, Most: 100}); len(all) > 0 {
				h.t.Errorf("%v is left for %v", all, quiet)
			}
		}
		if all := h.left(admin.AbandonedKeysQuery{Consumer: "shipping", Most: 100}); len(all) > 0 {
			h.t.Errorf("%v is left of another consumer", all)
		}
		h.want("a", keystore.Claimed)
		h.wantLeft()
		h.Pass(h.t, 2*keyLease)
		if k := h.left(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]; string(k.Note) != "of a" || k.Started != 2 {
			h.t.Errorf("after another claim it is %+v", k)
		}
	})
	able("F2_a_note_goes_with_its_end", "A note stays where nobody knows what became of a claim, and is gone with every other end; a result is no note.", func(h *keys) {
		for id, e := range map[string]keystore.Event{"abandoned": keystore.Abandon, "released": keystore.Release, "completed": keystore.Complete, "failed": keystore.Fail, "forgotten": keystore.Forget} {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.note(id, token, "a note"))
			h.t.must(h.end(id, token, e, ""))
			if h.note(id, token, "too late") == nil {
				h.t.Errorf("%s, it takes a note", id)
			}
		}
		again, _ := h.want("abandoned", keystore.Claimed)
		h.t.must(h.end("abandoned", again, keystore.Release, "")) // and of the first nobody knows
		h.Pass(h.t, 2*keyLease)
		h.wantLeft("abandoned")
		if _, a := h.want("completed", keystore.Completed); len(a.Result) > 0 {
			h.t.Errorf("its result is %q", a.Result)
		}
		token, a := h.want("abandoned", keystore.Claimed)
		h.t.must(h.end("abandoned", token, keystore.Complete, "made"))
		if a.Result != nil {
			h.t.Errorf("a claim is told %q", a.Result)
		}
		if _, a := h.want("abandoned", keystore.Completed); string(a.Result) != "made" {
			h.t.Errorf("its result is %q", a.Result)
		}
		h.want("released", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		h.wantLeft()
	})
	able("F2_what_was_seen_is_claimed_as_it_was_seen_or_not_at_all", "A claim of a key that was seen left is granted if the key still stands so, and makes none that is forgotten.", func(h *keys) {
		seen := func(id string, started int) (store.Token, keystore.Answer) {
			h.t.Helper()
			c := keystore.Claim{Key: keyOf(id), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep, Seen: started}
			a := h.ask(c)
			if again := h.ask(c); again.State != a.State || again.Started != a.Started { // its answer may be lost
				h.t.Errorf("%+v, and asked again %+v", a, again)
			}
			return c.Token, a
		}
		for _, id := range []string{"a", "forgotten", "again"} {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.note(id, token, "a note"))
			h.t.must(h.end(id, token, keystore.Abandon, ""))
		}
		token, a := seen("a", 1)
		if a.State != keystore.Claimed || a.Started != 2 || !a.Unknown() {
			h.t.Errorf("as it was seen: %+v", a)
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
			h.t.Errorf("it was made: %+v", a)
		}
	})
	able("law_5_a_claim_that_was_lost_notes_nothing", "Only who has the key notes something of it.", func(h *keys) {
		stale, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.note("a", token, "right"))
		if h.note("a", stale, "stale") == nil || h.note("never claimed", stale, "stale") == nil {
			h.t.Error("a stale token notes something")
		}
		h.Pass(h.t, 2*keyLease)
		if k := h.left(admin.AbandonedKeysQuery{Consumer: "billing", Most: 100})["a"]; string(k.Note) != "right" {
			h.t.Errorf("it is %+v", k)
		}
	})
	able("F2_the_walk_is_bounded_and_misses_nothing", "A call looks at so many keys, and the next goes on behind them.", func(h *keys) {
		ids := map[string]bool{"a": true, "b\x00": true, "\xff": true, "d": true, "e": true}
		for id := range ids {
			token, _ := h.want(id, keystore.Claimed)
			h.t.must(h.note(id, token, "note of "+id))
		}
		h.ask(keystore.Claim{Key: semel.Key{Consumer: "shipping", Source: "shop", ID: "f"}, Token: store.NewToken(), Lease: keyLease, Keep: keyKeep})
		h.Pass(h.t, 2*keyLease)
		for _, most := range []int{1, 2, 5, 6, 7} {
			all := h.left(admin.AbandonedKeysQuery{Consumer: "billing", Most: most})
			for id := range ids {
				if string(all[id].Note) != "note of "+id {
					h.t.Errorf("looked at by %d, %q is %+v", most, id, all[id])
				}
			}
		}
	})
	able("F2_a_note_has_its_bounds", "A note is as long as a result may be, and no longer, and never empty.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.note("a", token, string(manyBytes(keystore.MaxResult))))
		for _, note := range [][]byte{nil, make([]byte, keystore.MaxResult+1)} {
			if err := h.Store.(admin.RequestStore).SaveRequest(h.t.context(), keyOf("a"), token, note); err == nil {
				h.t.Errorf("a note of %d bytes is kept", len(note))
			}
		}
	})
}
