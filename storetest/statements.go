package storetest

import "github.com/semel-go/semel/store"

// statements are the laws about handlers that end their transaction with a
// statement, of which the driver of the database knows nothing.
func (s suite[Tx]) statements(t *T) {
	t.Run("trap_T99_what_a_handler_writes_after_its_own_rollback_leaves_nothing",
		"After a handler sent ROLLBACK or COMMIT as a statement, nothing of its batch and nothing that it writes afterwards is left, or the statement was refused and all of it commits with the marks; a store may declare that what is written afterwards stands.",
		func(t *T) {
			for _, ending := range []string{"rollback", "ROLLBACK", "/* x */ rollback; -- x", "commit", "end"} {
				s.endsByStatement(t, ending, "")
				s.endsByStatement(t, ending, "begin")
			}
		})
}

// endsByStatement lets the second handler of a batch end the transaction, open
// another perhaps, and write.
func (s suite[Tx]) endsByStatement(t *T, ending, again string) {
	h := s.opened(t)
	if h.Send == nil {
		t.lacks("Instance.Send")
	}
	all := []string{"a", "b"}
	if most := h.Store.Limits().Batch; most > 0 {
		all = all[1:]
	}
	b, _ := h.begin(h.markAll(all...)...)
	last := len(all) - 1
	for i, id := range all {
		t.must(h.Effect(t.context(), b.Tx(i), id))
	}
	for _, text := range []string{ending, again} {
		if text != "" {
			_ = h.Send(t.context(), b.Tx(last), text)
		}
	}
	_ = h.Effect(t.context(), b.Tx(last), "late")
	if again != "" {
		_ = h.Send(t.context(), b.Tx(last), "commit")
	}
	want := 0
	if broken, ok := b.(store.TxStatus); ok && broken.TxAborted() {
		b.Rollback(t.context())
	} else if r := b.Commit(t.context(), store.Ending{}); r.Outcome == store.Committed {
		want = 1 // the ending was refused, and all of it is one batch still
	}
	if late := h.Count(t, "late"); late != want && !(late == 1 && s.h.Can.LeavesLate) {
		t.Errorf("after %q %q: %d effects that the handler wrote afterwards are left, want %d", ending, again, late, want)
	}
	h.deliver(h.markAll(all...)...)
	for _, id := range all {
		h.wantCount(id, 1)
	}
}
