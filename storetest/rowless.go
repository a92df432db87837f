package storetest

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// rowless is the law of a store without an inbox.
func (s suite[Tx]) rowless(t *T) {
	t.Run("case_7_without_an_inbox_a_commit_with_a_row_is_refused_and_writes_nothing",
		"A store that keeps no rows does not commit a batch that has one: the message of the row would be acked and exist nowhere.",
		func(t *T) {
			h := s.opened(t)
			parked := h.mark("b")
			parked.As = store.Parked
			marks := []store.Mark{h.mark("a"), parked}
			b, v := h.begin(marks...)
			h.wantKinds(v, fresh, fresh)
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			r := b.Commit(t.context(), store.Ending{Rows: []store.Row{
				{Mark: 1, State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("b")}},
			}})
			if r.Outcome != store.NotCommitted || r.Class != store.ClassPermanent || r.Err == nil {
				t.Errorf("the commit says %+v, want not committed, of class permanent, with an error", r)
			}
			h.wantCount("a", 0)
			h.wantKinds(h.deliver(h.markAll("a", "b")...), fresh, fresh)
			h.wantCount("a", 1)
		})
}
