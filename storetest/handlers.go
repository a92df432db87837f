package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// handlers are the laws about handlers that misbehave in their transaction.
func (s suite[Tx]) handlers(t *T) {
	t.Run("an_error_of_a_handlers_own_is_retryable",
		"An error that the store does not know is worth another attempt, also when it is wrapped.",
		func(t *T) {
			h := s.opened(t)
			for _, err := range []error{errHandler, fmt.Errorf("charging: %w", errHandler)} {
				b, _ := h.begin(h.mark("a"))
				if c := h.classify(b, err); c != store.ClassRetry {
					t.Errorf("%v is of class %v, want retry", err, c)
				}
				b.Rollback(t.context())
			}
		})
	t.Run("trap_T84_what_a_handler_met_elsewhere_is_its_own",
		"An end of file, a network error or a transaction that is over, met beside the batch, is worth an attempt of its message; the store works.",
		func(t *T) { s.elsewhere(t) })
	t.Run("trap_95_a_swallowed_error_costs_no_neighbour_its_effect",
		"When a handler swallows an error of its statement, either the batch knows that it is broken and nothing commits, or everything else commits.",
		func(t *T) { s.swallowed(t) })
	t.Run("trap_96_a_handler_that_commits_by_itself_leaves_no_marker_without_effect",
		"After a handler's own commit no neighbour is marked without its effect, and the batch says that it is broken.",
		func(t *T) { s.endsItself(t, true) })
	t.Run("trap_96_a_handler_that_rolls_back_by_itself_leaves_nothing",
		"After a handler's own rollback nothing of the batch is left, and the batch says that it is broken.",
		func(t *T) { s.endsItself(t, false) })
}

// elsewhere are errors as a handler meets them at a provider or in another
// database.
var elsewhere = []error{
	io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, os.ErrDeadlineExceeded,
	&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, context.DeadlineExceeded, context.Canceled,
}

func (s suite[Tx]) elsewhere(t *T) {
	h := s.opened(t)
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
		t.Errorf("after an error of the database an end of file is of class %v, want an attempt of the message", c)
	}
	b.Rollback(t.context())
	h.wantCount("a", 0)
}

// classify says what an error that a handler returned means for its batch.
func (h *fixture[Tx]) classify(b store.Batch[Tx], err error) store.Class {
	if knows, ok := b.(store.TxStatus); ok {
		return knows.ClassifyHandler(h.t.context(), err)
	}
	return h.Store.Classify(err)
}

func (s suite[Tx]) swallowed(t *T) {
	h := s.opened(t)
	if h.Spoil == nil {
		t.lacks("Instance.Spoil")
	}
	marks := h.markAll("a", "b", "c")
	b, _ := h.begin(marks...)
	t.must(h.Effect(t.context(), b.Tx(0), "a"))
	err := h.Spoil(t.context(), b.Tx(1))
	if err == nil {
		t.Fatal("Spoil did not fail")
	}
	if c := h.classify(b, err); c != store.ClassPermanent && c != store.ClassRetry {
		t.Errorf("%v is of class %v, want an attempt of the message", err, c)
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

// brokenAs checks that a batch which says what broke it says an error of this
// class, or that it does not know.
func (h *fixture[Tx]) brokenAs(b store.Batch[Tx], class store.Class) {
	knows, ok := b.(store.TxStatus)
	if !ok {
		return
	}
	if by := knows.AbortCause(); by != nil && h.Store.Classify(by) != class {
		h.t.Errorf("the batch says that %v broke it, of class %v, want class %v", by, h.Store.Classify(by), class)
	}
}

func (s suite[Tx]) endsItself(t *T, commit bool) {
	h := s.opened(t)
	if h.End == nil {
		t.lacks("Instance.End")
	}
	all := []string{"a", "b", "c"}
	if most := h.Store.Limits().Batch; most > 0 {
		all = all[:most]
	}
	b, _ := h.begin(h.markAll(all...)...)
	t.must(h.Effect(t.context(), b.Tx(0), "a"))
	failed := h.End(b.Tx(0), commit)
	if broken, ok := b.(store.TxStatus); ok && !broken.TxAborted() {
		t.Error("the batch does not know that its transaction is over")
	}
	h.brokenAs(b, store.ClassPermanent)
	if len(all) > 1 {
		s.refuses(h, b.Tx(1))
		if commit && failed == nil {
			t.Error("the handler was told that its commit succeeded")
		}
	}
	r := b.Commit(t.context(), store.Ending{})
	if r.Outcome == store.Committed || r.Outcome == store.NotCommitted && r.Class != store.ClassAborted {
		t.Errorf("the commit says %+v, want not committed as aborted, or unknown", r)
	}
	applied := h.asks(h.mark("a"))[0].Already(store.Applied)
	if applied && (!commit || len(all) > 1 || r.Outcome != store.CommitUnknown) {
		t.Error("a marker is left")
	}
	h.deliver(h.markAll(all...)...)
	for _, id := range all {
		h.wantCount(id, 1)
	}
}
