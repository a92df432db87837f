package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// testHandlers tests handlers that do what is forbidden in their transaction, such as a commit.
func (s suite[Tx]) testHandlers(t *T) {
	s.run(t, "a_handlers_error_is_retryable",
		"An error that the store does not know is retried, also when it is wrapped.", func(t *T, h *fixture[Tx]) {
			for _, err := range []error{errHandler, fmt.Errorf("charging: %w", errHandler)} {
				b, _ := h.begin(h.mark("a"))
				if c := h.classify(b, err); c != store.ClassRetry {
					t.Errorf("%v is of class %v, want retry", err, c)
				}
				b.Rollback(t.context())
			}
		})
	s.run(t, "trap_T84_a_handlers_error_from_elsewhere_is_its_own",
		"If a handler meets an end of file, a network error or an ended transaction elsewhere, its message is retried; the store is not blamed.", s.elsewhere)
	s.run(t, "trap_95_a_swallowed_error_harms_no_other_message",
		"If a handler swallows an error of its statement, either the batch reports that it is broken and nothing commits, or everything else commits.", s.swallowed)
	t.Run("trap_96_a_handler_that_commits_by_itself_leaves_no_marker_without_effect",
		"If a handler commits the transaction itself, no other message of the batch is marked without its effect, and the batch reports that it is broken.", func(t *T) { s.endsItself(t, true) })
	t.Run("trap_96_a_handler_that_rolls_back_by_itself_leaves_nothing",
		"If a handler rolls back the transaction itself, nothing of the batch is left, and the batch reports that it is broken.", func(t *T) { s.endsItself(t, false) })
}

// elsewhere contains errors that a handler may get from a provider or from another database.
var elsewhere = []error{
	io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, os.ErrDeadlineExceeded,
	&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, context.DeadlineExceeded, context.Canceled,
}

func (s suite[Tx]) elsewhere(t *T, h *fixture[Tx]) {
	for _, err := range elsewhere {
		b, _ := h.begin(h.mark("a"))
		t.must(h.Effect(t.context(), b.Tx(0), "a"))
		for _, err := range []error{err, fmt.Errorf("charging: %w", err), semel.Permanent(err)} {
			if c := h.classify(b, err); c != store.ClassRetry {
				t.Errorf("%v is of class %v, want retry", err, c)
			}
		}
		t.must(h.Effect(t.context(), b.Tx(0), "a"))
		b.Rollback(t.context())
	}
	if h.Spoil == nil {
		return
	}
	b, _ := h.begin(h.mark("a"))
	if h.Spoil(t.context(), b.Tx(0)) == nil {
		t.Fatal("Spoil did not fail")
	}
	if c := h.classify(b, io.EOF); c != store.ClassRetry && c != store.ClassPermanent {
		t.Errorf("after an error of the database an end of file is of class %v, want a retry of the message", c)
	}
	b.Rollback(t.context())
	h.wantCount("a", 0)
}

// classify returns the class of an error that a handler returned. If the batch implements store.TxStatus, the batch
// classifies the error. If not, the store classifies the error.
func (h *fixture[Tx]) classify(b store.Batch[Tx], err error) store.Class {
	if knows, ok := b.(store.TxStatus); ok {
		return knows.ClassifyHandler(h.t.context(), err)
	}
	return h.Store.Classify(err)
}

func (s suite[Tx]) swallowed(t *T, h *fixture[Tx]) {
	t.needs("Instance.Spoil", h.Spoil != nil)
	marks := h.markAll("a", "b", "c")
	b, _ := h.begin(marks...)
	t.must(h.Effect(t.context(), b.Tx(0), "a"))
	err := h.Spoil(t.context(), b.Tx(1))
	if err == nil {
		t.Fatal("Spoil did not fail")
	}
	if c := h.classify(b, err); c != store.ClassPermanent && c != store.ClassRetry {
		t.Errorf("%v is of class %v, want a retry of the message", err, c)
	}
	if broken, ok := b.(store.TxStatus); ok && broken.TxAborted() {
		h.brokenAs(b, h.Store.Classify(err))
		b.Rollback(t.context())
		h.wantKinds(h.asks(marks...), fresh, fresh, fresh)
		return
	}
	t.must(h.Effect(t.context(), b.Tx(2), "c"))
	s.whole(h, b.Commit(t.context(), store.Ending{Trim: []int{1}}), "a", "c")
}

// brokenAs checks the class of the error that aborted the batch. If the batch does not report this error, brokenAs
// checks nothing.
func (h *fixture[Tx]) brokenAs(b store.Batch[Tx], class store.Class) {
	knows, ok := b.(store.TxStatus)
	if !ok {
		return
	}
	if by := knows.AbortCause(); by != nil && h.Store.Classify(by) != class {
		h.t.Errorf("the batch reports that %v broke it, of class %v, want class %v", by, h.Store.Classify(by), class)
	}
}

func (s suite[Tx]) endsItself(t *T, commit bool) {
	h := s.open(t)
	t.needs("Instance.End", h.End != nil)
	all := []string{"a", "b", "c"}
	if most := h.Store.Limits().Batch; most > 0 {
		all = all[:most]
	}
	b, _ := h.begin(h.markAll(all...)...)
	t.must(h.Effect(t.context(), b.Tx(0), "a"))
	failed := h.End(b.Tx(0), commit)
	if broken, ok := b.(store.TxStatus); ok && !broken.TxAborted() {
		t.Error("the batch does not report that its transaction has ended")
	}
	h.brokenAs(b, store.ClassPermanent)
	if len(all) > 1 {
		s.refuses(h, b.Tx(1))
		if commit && failed == nil {
			t.Error("the handler's own commit returned no error")
		}
	}
	r := b.Commit(t.context(), store.Ending{})
	if r.Outcome == store.Committed || r.Outcome == store.NotCommitted && r.Class != store.ClassAborted {
		t.Errorf("Commit returned %+v, want not committed as aborted, or unknown", r)
	}
	applied := h.asks(h.mark("a"))[0].Already(store.Applied)
	if applied && (!commit || len(all) > 1 || r.Outcome != store.CommitUnknown) {
		t.Error("a marker is left behind")
	}
	h.deliver(h.markAll(all...)...)
	for _, id := range all {
		h.wantCount(id, 1)
	}
}

// testStatements tests handlers that send a statement which ends their transaction without the knowledge of the
// database driver.
func (s suite[Tx]) testStatements(t *T) {
	t.Run("trap_T99_what_a_handler_writes_after_its_own_rollback_leaves_nothing",
		"If a handler sends ROLLBACK or COMMIT, either nothing of the batch and of its later writes is left, or the statement was refused and everything commits with the marks. A store may declare that later writes stay (LeavesLate).", func(t *T) {
			for _, ending := range []string{"rollback", "ROLLBACK", "/* x */ rollback; -- x", "commit", "end"} {
				s.endsByStatement(t, ending, "")
				s.endsByStatement(t, ending, "begin")
			}
		})
}

// endsByStatement runs a batch whose second handler ends the transaction with a statement (the parameter ending) and
// then writes an effect. If the parameter again is not empty, it is a statement that opens another transaction before
// the effect.
func (s suite[Tx]) endsByStatement(t *T, ending, again string) {
	h := s.open(t)
	t.needs("Instance.Send", h.Send != nil)
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
		want = 1 // the database refused the statement, so the batch is still one transaction
	}
	if late := h.Count(t, "late"); late != want && !(late == 1 && s.h.Can.LeavesLate) {
		t.Errorf("after %q %q: %d effects that the handler wrote afterwards are left, want %d", ending, again, late, want)
	}
	h.deliver(h.markAll(all...)...)
	for _, id := range all {
		h.wantCount(id, 1)
	}
}

// testContents tests the comparison of contents by their fingerprints.
func (s suite[Tx]) testContents(t *T) {
	s.run(t, "trap_73_one_identity_with_another_content_is_a_conflict",
		"The same identity with another fingerprint is a conflict, in the same batch and in a later one.", func(t *T, h *fixture[Tx]) {
			v := h.deliver(h.contentMark("a", 1), h.contentMark("a", 2), h.contentMark("a", 1))
			h.wantKinds(v, fresh, conflict, already(store.Applied))
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
			h.wantKinds(h.asks(h.contentMark("a", 2)), conflict)
			h.wantCount("a", 1)
		})
	s.run(t, "law_10_a_conflict_is_reported_for_every_outcome",
		"A marker keeps its fingerprint whatever its outcome, so other content is a conflict.", func(t *T, h *fixture[Tx]) {
			for _, o := range []store.Outcome{store.Applied, store.Parked, store.DeadLettered, store.Discarded} {
				m := h.contentMark(string(rune('a'+o)), 1)
				m.As = o
				h.deliver(m)
				h.wantKinds(h.asks(h.contentMark(string(m.ID), 2)), conflict)
			}
		})
	s.run(t, "case_14_a_changed_rule_makes_no_false_conflict",
		"Only fingerprints of the same version are compared; a missing fingerprint matches every other.", func(t *T, h *fixture[Tx]) {
			newer, none := h.contentMark("a", 9), h.mark("a")
			newer.Fingerprint.Version = 2
			h.deliver(h.contentMark("a", 1))
			h.wantKinds(h.asks(newer), already(store.Applied))
			h.wantKinds(h.asks(none), already(store.Applied))
			h.deliver(h.mark("b"))
			h.wantKinds(h.asks(h.contentMark("b", 1)), already(store.Applied))
		})
	s.run(t, "trap_74_every_bit_of_a_fingerprint_counts",
		"Two fingerprints differ if any of their bytes differ, including the first and the last.", func(t *T, h *fixture[Tx]) {
			m := h.contentMark("a", 1)
			h.deliver(m)
			for _, i := range []int{0, 15} {
				other := m
				other.Fingerprint.Sum[i] ^= 0x80
				h.wantKinds(h.asks(other), conflict)
			}
		})
}

// conflict delivers a message with the same identity and another content, as the consumer does: the store writes a new
// row for the content, or counts the delivery on the row that the content already has.
func (h *fixture[Tx]) conflict(id string, content byte) store.Verdict {
	h.t.Helper()
	b, v := h.begin(h.contentMark(id, content))
	h.wantKinds(v, conflict)
	h.commit(b, conflictRow(content, v[0].Known))
	return v[0]
}

// conflictRow returns the ending of a batch whose first mark is a conflict.
func conflictRow(content byte, known bool) store.Ending {
	return store.Ending{Rows: []store.Row{{
		Conflict: true, Repeat: known, State: store.StateParked, Reason: semel.ReasonConflict,
		Message: &semel.Message{Body: []byte{content}},
	}}}
}

func (s suite[Tx]) testConflicts(t *T) {
	s.run(t, "case_8_a_conflict_has_a_row_of_its_own",
		"Each content of an identity has one row; the marker does not change; copies are counted on the row of their content.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1))
			for i, known := range []bool{false, true, true} {
				if v := h.conflict("a", 2); v.Known != known {
					t.Errorf("delivery %d of the conflict is known: %t, want %t", i, v.Known, known)
				}
			}
			if v := h.conflict("a", 3); v.Known {
				t.Error("a third content is reported as known")
			}
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
			rows := h.list(store.RowFilter{IDs: []string{"a"}})
			if len(rows) != 2 || rows[0].Repeated != 2 || rows[1].Repeated != 0 || !rows[0].Conflict || rows[0].Message.Body[0] != 2 {
				t.Errorf("the rows are %+v", rows)
			}
			h.wantCount("a", 1)
		})
	s.run(t, "the_marker_keeps_the_first_content_of_a_conflict",
		"Marker returns the outcome of an identity and its time, and finds nothing for an identity that was never seen.", func(t *T, h *fixture[Tx]) {
			reader, able := h.Store.(admin.MarkerReader)
			if !able {
				return
			}
			for _, id := range []string{"a", "0190c3f5-8a52-7cc1-9d7e-0a1b2c3d4e5f", "\xff", strings.Repeat("long ", 200)} {
				h.deliver(h.contentMark(id, 1))
				m, found, err := reader.Marker(t.context(), semel.Key{Consumer: "billing", Source: "shop", ID: id})
				if err != nil || !found || m.Outcome != store.Applied || m.At.IsZero() {
					t.Errorf("the marker of %.40q is %+v, %t, %v", id, m, found, err)
				}
				if m.Fingerprint.Conflicts(h.contentMark(id, 1).Fingerprint) || !s.h.Can.OneConsumer && !m.Fingerprint.Conflicts(h.contentMark(id, 2).Fingerprint) {
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

// testConflictsAtOnce tests the same conflict in several batches at the same time.
func (s suite[Tx]) testConflictsAtOnce(t *T) {
	s.run(t, "a_conflict_that_two_batches_meet_at_once_has_one_row",
		"However many batches meet a conflict at once, its content has one row and every other delivery is counted on it.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1))
			runConcurrently(10, func(int) { h.conflict("a", 2) })
			rows := h.list(store.RowFilter{IDs: []string{"a"}})
			if len(rows) != 1 || rows[0].Repeated != 9 {
				t.Errorf("the rows are %+v", rows)
			}
		})
	t.Run("two_batches_that_both_saw_a_conflict_keep_one_row_and_its_count",
		"If two batches met a content before either committed, the second counts on the row of the first, and so does a later third; also if one of them rolls back.", func(t *T) {
			if s.h.Can.OneWriter {
				return // with a single writer, the second batch begins after the first has ended
			}
			for _, rolledBack := range []bool{false, true} {
				h := s.open(t)
				h.deliver(h.contentMark("a", 1))
				both := [2]store.Batch[Tx]{}
				for i := range both {
					var v []store.Verdict
					both[i], v = h.begin(h.contentMark("a", 2))
					h.wantKinds(v, conflict)
					if v[0].Known {
						t.Error("a row is reported as known before any batch wrote it")
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
					t.Error("the row that was written is not reported as known")
				}
				rows := h.list(store.RowFilter{IDs: []string{"a"}})
				if len(rows) != 1 || int64(rows[0].Repeated) != want {
					t.Errorf("the rows are %+v, want one that was repeated %d times", rows, want)
				}
				h.wantCount("a", 1)
			}
		})
}
