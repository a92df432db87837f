package storetest

import (
	"bytes"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// hasResults reports whether the store keeps results and tells them.
func hasResults[Tx any](st store.TxStore[Tx]) bool {
	_, keeps := st.(store.Results[Tx])
	return keeps
}

// keeps keeps a result in the transaction of mark i of a batch.
func (h *fixture[Tx]) keeps(b store.Batch[Tx], i int, m store.Mark, result []byte) {
	h.t.Helper()
	h.t.must(h.Store.(store.Results[Tx]).KeepResult(h.t.context(), b.Tx(i), store.ResultOf{Scope: m.Scope, ID: m.ID}, result))
}

// wantResults asks what is kept of marks; nil stands for nothing.
func (h *fixture[Tx]) wantResults(marks []store.Mark, want ...[]byte) {
	h.t.Helper()
	of := make([]store.ResultOf, len(marks))
	for i, m := range marks {
		of[i] = store.ResultOf{Scope: m.Scope, ID: m.ID}
	}
	got, err := h.Store.(store.Results[Tx]).Results(h.t.context(), of)
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
	t.Run("C12_a_result_is_there_exactly_when_its_effect_is", "A result shares the fate of the transaction that it was written in.", func(t *T) {
		h := s.opened(t)
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
	t.Run("C12_a_result_may_be_kept_by_the_commit", "A batch that keeps results by its commit keeps all of them, and only with it.", func(t *T) {
		h := s.opened(t)
		marks := h.markAll("a", "b", "c")
		b, _ := h.begin(marks...)
		end, able := b.(admin.CommitResultWriter)
		defer b.Rollback(t.context())
		if !able {
			return
		}
		of := func(i int) store.ResultOf { return store.ResultOf{Scope: marks[i].Scope, ID: marks[i].ID} }
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
	t.Run("C12_a_result_is_any_bytes_of_its_own_identity", "A result comes back as it was given, under the scope and the id of its mark alone.", func(t *T) {
		h := s.opened(t)
		longest := semel.MaxID
		if s.h.Can.LongestID > 0 {
			longest = s.h.Can.LongestID
		}
		marks := h.markAll("large", "empty", "\"quoted\\", strings.Repeat("x", longest), "00000000-0000-0000-0000-000000000001")
		want := [][]byte{manyBytes(store.MaxResult), {}, []byte("a\x00b\xff"), []byte("long"), []byte("uuid")}
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
		t.Run("law_5_a_claim_that_was_lost_keeps_no_result", "What is written under a claim that does not stand is not there.", func(t *T) {
			h := s.opened(t)
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
		t.Run("H3_a_result_goes_with_its_marker", "What the reaper removes of an identity it removes whole, and it counts only if it is asked to.", func(t *T) {
			h := s.opened(t)
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
