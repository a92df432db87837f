package storetest

import "github.com/semel-go/semel"

// conflict delivers another content of an identity, as the engine does: with a
// new row, or counted on the one that is known.
func (h *house[Tx]) conflict(id string, content byte) semel.Verdict {
	h.t.Helper()
	b, v := h.begin(h.print(id, content))
	h.wantKinds(v, semel.Conflict)
	h.commit(b, semel.Ending{Rows: []semel.Row{{
		Conflict: true, Repeat: v[0].Known, State: semel.StateParked, Reason: semel.ReasonConflict,
		Message: &semel.Message{Body: []byte{content}},
	}}})
	return v[0]
}

// conflicts are the laws of rows of conflicts.
func (s suite[Tx]) conflicts(t *T) {
	t.Run("case_8_a_conflict_has_a_row_of_its_own",
		"Each content of an identity has one row; the marker stays as it is; copies are counted on the row of their content.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			for i, known := range []bool{false, true, true} {
				if v := h.conflict("a", 2); v.Known != known {
					t.Errorf("delivery %d of the conflict is known: %t, want %t", i, v.Known, known)
				}
			}
			if v := h.conflict("a", 3); v.Known {
				t.Error("a third content is called known")
			}
			h.wantKinds(h.asks(h.print("a", 1)), semel.AlreadyApplied)
			rows := h.list(semel.RowFilter{ID: "a"})
			if len(rows) != 2 || rows[0].Repeated != 2 || rows[1].Repeated != 0 || !rows[0].Conflict || rows[0].Message.Body[0] != 2 {
				t.Errorf("the rows are %+v", rows)
			}
			h.wantCount("a", 1)
		})
	t.Run("a_conflict_that_two_batches_meet_at_once_has_one_row",
		"However many batches meet a conflict at once, its content has one row and every other delivery is counted.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			together(10, func(int) { h.conflict("a", 2) })
			rows := h.list(semel.RowFilter{ID: "a"})
			if len(rows) != 1 || rows[0].Repeated != 9 {
				t.Errorf("the rows are %+v", rows)
			}
		})
	t.Run("a_conflict_is_not_retried_while_the_identity_is_applied",
		"A retry of a conflict is refused while another content is applied, because it would double; nothing is changed.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			h.conflict("a", 2)
			before := h.row("a", true)
			h.wantRefused(before, semel.ErrConflict)
			if after := h.row("a", true); after.Revision != before.Revision || after.State != semel.StateParked {
				t.Errorf("the row is %+v", after)
			}
		})
	t.Run("of_two_parked_contents_one_is_applied",
		"When a conflict was retried in place of its first content, the first is refused: an identity has one effect.",
		func(t *T) {
			h := s.opened(t)
			first := h.park("a")
			h.conflict("a", 2)
			h.retry(h.row("a", true))
			h.wantCount("a", 1)
			h.wantRefused(first, semel.ErrConflict)
			h.wantKinds(h.asks(h.print("a", 2), h.print("a", 1)), semel.AlreadyApplied, semel.Conflict)
			t.must(h.inbox().Discard(t.context(), first.Number, first.Revision, act("discard")))
			h.wantKinds(h.asks(h.print("a", 2)), semel.AlreadyApplied)
		})
}
