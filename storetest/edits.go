package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// keyedEdit is how the act of an edit begins in a store whose hashes are keyed (admin.EditAct).
var keyedEdit = regexp.MustCompile(`^hmac-sha256 [0-9a-f]{64} \(1 bytes\) to [0-9a-f]{64} \(3 bytes\): `)

func hasEdits(store any) bool {
	_, editor := store.(admin.Editor)
	return editor
}

func (h *fixture[Tx]) editor() admin.Editor { return h.Store.(admin.Editor) }

// edits gives a row another body.
func (h *fixture[Tx]) edits(r store.StoredRow, body string) store.StoredRow {
	h.t.Helper()
	h.t.must(h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte(body), act("edit")))
	return h.number(r.Number)
}

// wantEdits wants edits with these bodies before them, of which the last gave the row its own.
func (h *fixture[Tx]) wantEdits(number int64, bodies ...string) {
	h.t.Helper()
	all, err := h.editor().Edits(h.t.context(), number, true)
	h.t.must(err)
	if len(all) != len(bodies)-1 {
		h.t.Fatalf("%d edits, want %d: %+v", len(all), len(bodies)-1, all)
	}
	for i, e := range all {
		was, is := []byte(bodies[i]), []byte(bodies[i+1])
		if e.Number != i+1 || e.Who != "ana" || e.At.IsZero() || e.Removed || !bytes.Equal(e.Was, was) ||
			e.Before != sha256.Sum256(was) || e.After != sha256.Sum256(is) || e.SizeBefore != len(was) || e.SizeAfter != len(is) {
			h.t.Errorf("edit %d is %+v", i, e)
		}
	}
	rows := h.list(store.RowFilter{Numbers: []int64{number}, Bodies: true})
	if last := bodies[len(bodies)-1]; string(rows[0].Message.Body) != last || rows[0].Size != len(last) {
		h.t.Errorf("the body is %.40q of %d bytes, want %.40q", rows[0].Message.Body, rows[0].Size, last)
	}
	if short, err := h.editor().Edits(h.t.context(), number, false); err != nil || len(short) != len(all) || len(short) > 0 && short[0].Was != nil {
		h.t.Errorf("without bodies: %+v, %v", short, err)
	}
}

// edited are the laws of bodies that people give rows.
func (s suite[Tx]) edited(t *T) {
	t.Run("G5_an_edit_changes_the_body_and_keeps_the_one_before", "An edited row has the new body and all else that it had, and the store has each body that it had before.", func(t *T) {
		h := s.opened(t)
		r := h.park("a")
		after := h.edits(r, "b\x00\xff")
		if after.Key != r.Key || after.Fingerprint != r.Fingerprint || after.State != r.State || after.Revision == r.Revision || after.Reason != r.Reason {
			t.Errorf("the row was %+v and is %+v", r, after)
		}
		h.wantEdits(r.Number, "a", "b\x00\xff")
		after = h.edits(after, "")
		h.edits(after, "c")
		h.wantEdits(r.Number, "a", "b\x00\xff", "", "c")
		h.wantEdits(h.park("other").Number, "other")
		h.wantActs(r.Number, "edit done", "edit done", "edit done")
		acts, err := h.inbox().Acts(t.context(), r.Number, 0)
		t.must(err)
		if want := fmt.Sprintf("sha256 %x (1 bytes) to %x (3 bytes): ", sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b\x00\xff"))); !strings.HasPrefix(acts[0].Why, want) && !keyedEdit.MatchString(acts[0].Why) {
			t.Errorf("the act says %q, want %q", acts[0].Why, want)
		}
	})
	t.Run("G5_copies_of_the_original_are_duplicates_of_the_edit", "What the producer sent is known as before an edit: a copy of it is a duplicate, and another content, also the edited one, a conflict.", func(t *T) {
		h := s.opened(t)
		r := h.edits(h.park("a"), "b")
		h.wantKinds(h.asks(h.print("a", 1)), already(store.Parked))
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		h.wantKinds(h.asks(h.print("a", 1)), already(store.Waiting))
		h.works(r.Number)
		h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
		h.wantKinds(h.asks(h.print("a", 2)), conflict)
		h.wantCount("a", 1)
	})
	t.Run("trap_T46_nothing_is_edited_that_has_taken_effect", "An edit is refused, and nothing changed, where the row, or the first content of a conflict, has taken effect or may.", func(t *T) {
		h := s.opened(t)
		h.deliver(h.print("a", 1))
		h.conflict("a", 2)
		h.wantUnedited(h.row("a", true), semel.ErrConflict)
		r := h.park("b")
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		h.wantUnedited(h.number(r.Number), semel.ErrState)
		h.works(r.Number)
		h.wantUnedited(h.number(r.Number), semel.ErrState)
		closed := h.park("c")
		t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), closed.Seen())...))
		h.wantUnedited(h.number(closed.Number), semel.ErrState)
	})
	t.Run("trap_T46_nothing_is_edited_that_was_seen_otherwise", "An edit names the revision that it saw, and is refused once the row has another.", func(t *T) {
		h := s.opened(t)
		r := h.park("a")
		h.edits(r, "b")
		h.wantUnedited(r, semel.ErrChanged)
		r.Number += 1000
		h.wantUnedited(r, semel.ErrChanged)
	})
	t.Run("G5_what_was_sent_without_an_identity_is_not_edited", "A row that is never run gets no other body.", func(t *T) {
		h := s.opened(t)
		r := h.put("a", store.Row{Surrogate: true, State: store.StateParked, Reason: semel.ReasonNoIdentity, Message: &semel.Message{Body: []byte("a")}})
		h.wantUnedited(r, semel.ErrState)
	})
	if s.h.Can.Retention && !s.h.Can.Days {
		s.editedAndReaped(t)
	}
}

// wantUnedited wants an edit refused, of which nothing is left.
func (h *fixture[Tx]) wantUnedited(r store.StoredRow, want error) {
	h.t.Helper()
	kept, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if err := h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte("refused"), act("edit")); !errors.Is(err, want) {
		h.t.Errorf("an edit of a row that is %s: %v, want %v", r.State, err, want)
	}
	left, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if len(left) != len(kept) {
		h.t.Errorf("an edit that was refused is kept: %+v", left)
	}
	for _, row := range h.list(store.RowFilter{Numbers: []int64{r.Number}, Bodies: true}) {
		if string(row.Message.Body) == "refused" {
			h.t.Errorf("an edit that was refused changed the body")
		}
	}
}

// editedAndReaped: what a body was is removed with the body that is.
func (s suite[Tx]) editedAndReaped(t *T) {
	t.Run("law_11_bodies_before_an_edit_go_with_the_row_s_own", "Where the bodies of what has ended are removed, so are those before edits, and the hashes stay.", func(t *T) {
		h := s.opened(t)
		r := h.edits(h.park("a"), "b")
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		h.works(r.Number)
		h.retain(store.Retention{Keep: long, Bodies: soon})
		h.bodiless(r.Number)
		all, err := h.editor().Edits(t.context(), r.Number, true)
		t.must(err)
		if len(all) != 1 || all[0].Was != nil || !all[0].Removed || all[0].Before != sha256.Sum256([]byte("a")) {
			t.Errorf("the edits are %+v", all)
		}
	})
}

// bodiless reaps until the row has no body.
func (h *fixture[Tx]) bodiless(number int64) {
	h.t.Helper()
	ctx := h.t.context()
	for !h.number(number).BodyRemoved {
		h.t.must(h.reaper().Progressed(ctx, "billing", nil))
		h.pass(2)
		if moment(ctx); ctx.Err() != nil {
			h.t.Fatal("the body was not removed")
		}
	}
}
