package storetest

import (
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// conflict delivers another content of an identity, as the engine does: with a
// new row, or counted on the one that is known.
func (h *fixture[Tx]) conflict(id string, content byte) store.Verdict {
	h.t.Helper()
	b, v := h.begin(h.print(id, content))
	h.wantKinds(v, conflict)
	h.commit(b, conflictRow(content, v[0].Known))
	return v[0]
}

// conflictRow is the ending of a batch whose first mark met another content.
func conflictRow(content byte, known bool) store.Ending {
	return store.Ending{Rows: []store.Row{{
		Conflict: true, Repeat: known, State: store.StateParked, Reason: semel.ReasonConflict,
		Message: &semel.Message{Body: []byte{content}},
	}}}
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
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
			rows := h.list(store.RowFilter{IDs: []string{"a"}})
			if len(rows) != 2 || rows[0].Repeated != 2 || rows[1].Repeated != 0 || !rows[0].Conflict || rows[0].Message.Body[0] != 2 {
				t.Errorf("the rows are %+v", rows)
			}
			h.wantCount("a", 1)
		})
	t.Run("the_first_content_of_a_conflict_is_told",
		"A store that tells of markers says what became of an identity and when, and nothing of one that it never saw.",
		func(t *T) {
			h := s.opened(t)
			reader, able := h.Store.(admin.MarkerReader)
			if !able {
				return
			}
			for _, id := range []string{"a", "0190c3f5-8a52-7cc1-9d7e-0a1b2c3d4e5f", "\xff", strings.Repeat("long ", 200)} {
				h.deliver(h.print(id, 1))
				m, found, err := reader.Marker(t.context(), semel.Key{Consumer: "billing", Source: "shop", ID: id})
				if err != nil || !found || m.Outcome != store.Applied || m.At.IsZero() {
					t.Errorf("the marker of %.40q is %+v, %t, %v", id, m, found, err)
				}
				if m.Fingerprint.Conflicts(h.print(id, 1).Fingerprint) || !s.h.Can.OneConsumer && !m.Fingerprint.Conflicts(h.print(id, 2).Fingerprint) {
					t.Errorf("the marker of %.40q has the fingerprint %+v", id, m.Fingerprint)
				}
			}
			h.conflict("a", 2)
			parked := h.park("parked")
			m, found, err := reader.Marker(t.context(), parked.Key)
			if err != nil || !found || m.Outcome != store.Parked || m.At.Sub(parked.ReceivedAt).Abs() > time.Minute {
				t.Errorf("the marker of a parked message is %+v, %t, %v; it was received at %v", m, found, err, parked.ReceivedAt)
			}
			for _, key := range []semel.Key{{Consumer: "billing", Source: "shop", ID: "never"}, {Consumer: "audit", Source: "shop", ID: "a"}, {Consumer: "billing", Source: "", ID: "a"}} {
				if m, found, err := reader.Marker(t.context(), key); found || err != nil {
					t.Errorf("%v has the marker %+v, %v", key, m, err)
				}
			}
		})
}

// conflictsAtOnce are the laws of conflicts that several batches meet.
func (s suite[Tx]) conflictsAtOnce(t *T) {
	t.Run("a_conflict_that_two_batches_meet_at_once_has_one_row",
		"However many batches meet a conflict at once, its content has one row and every other delivery is counted.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			together(10, func(int) { h.conflict("a", 2) })
			rows := h.list(store.RowFilter{IDs: []string{"a"}})
			if len(rows) != 1 || rows[0].Repeated != 9 {
				t.Errorf("the rows are %+v", rows)
			}
		})
	t.Run("two_batches_that_both_saw_a_conflict_keep_one_row_and_its_count",
		"Of two batches that both met a content before either committed, the second counts on the row of the first, and so does a third that came later; also when one of them is rolled back.",
		func(t *T) {
			if s.h.Can.OneWriter {
				return // the second begins when the first has ended
			}
			for _, rolledBack := range []bool{false, true} {
				h := s.opened(t)
				h.deliver(h.print("a", 1))
				both := [2]store.Batch[Tx]{}
				for i := range both {
					var v []store.Verdict
					both[i], v = h.begin(h.print("a", 2))
					h.wantKinds(v, conflict)
					if v[0].Known {
						t.Error("a row is known before anybody wrote it")
					}
				}
				want := int64(2)
				if rolledBack {
					both[0].Rollback(t.context())
					want = 1
				} else {
					h.commit(both[0], conflictRow(2, false))
				}
				h.commit(both[1], conflictRow(2, false))
				if v := h.conflict("a", 2); !v.Known {
					t.Error("the row that was written is not known")
				}
				rows := h.list(store.RowFilter{IDs: []string{"a"}})
				if len(rows) != 1 || int64(rows[0].Repeated) != want {
					t.Errorf("the rows are %+v, want one that was repeated %d times", rows, want)
				}
				h.wantCount("a", 1)
			}
		})
}
