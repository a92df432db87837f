package storetest

import (
	"errors"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// newer are the laws of what a newer release wrote. A store may refuse to write
// it: then it is not there to be read.
func (s suite[Tx]) newer(t *T) {
	t.Run("trap_T104_an_outcome_of_a_newer_release_is_told_as_such",
		"A marker whose outcome this release does not know is never taken for one that it knows, nor for none, whatever its content.",
		func(t *T) {
			for _, outcome := range []store.Outcome{6, 9, 255} {
				h := s.opened(t)
				if !h.marked("a", outcome) {
					continue
				}
				is := store.Verdict{Kind: store.Newer, Was: outcome}
				h.wantKinds(h.deliver(h.mark("b"), h.mark("a"), h.mark("c")), fresh, is, fresh)
				h.wantKinds(h.deliver(h.print("a", 1)), is)
				h.wantCount("a", 0)
				h.wantCount("c", 1)
			}
		})
}

// marked writes a marker with an outcome; false if the store does not.
func (h *fixture[Tx]) marked(id string, o store.Outcome) bool {
	h.t.Helper()
	m := h.mark(id)
	m.As = o
	b, _, err := h.Store.Begin(h.t.context(), store.TxOptions{}, []store.Mark{m})
	return err == nil && b.Commit(h.t.context(), store.Ending{}).Outcome == store.Committed
}

// strangers are the laws of rows that a newer release wrote.
func (s suite[Tx]) strangers(t *T) {
	t.Run("trap_T104_a_row_of_a_newer_release_is_shown_and_not_acted_on",
		"A row whose state this release does not know is listed with that state, and neither closed nor run again.",
		func(t *T) {
			for _, state := range []store.RowState{"FUTURE", "FAILED_TERMINAL"} {
				h := s.opened(t)
				if h.hasRow("a", state) {
					s.untouched(h, state)
				}
			}
		})
}

// hasRow writes a row in a state; false if the store does not.
func (h *fixture[Tx]) hasRow(id string, state store.RowState) bool {
	h.t.Helper()
	m := h.mark(id)
	m.As = store.Parked
	b, _ := h.begin(m)
	row := store.Row{State: state, LastError: "as it was", Message: &semel.Message{Body: []byte(id)}}
	return b.Commit(h.t.context(), store.Ending{Rows: []store.Row{row}}).Outcome == store.Committed
}

func (s suite[Tx]) untouched(h *fixture[Tx], state store.RowState) {
	t := h.t
	r := h.row("a", false)
	if r.State != state || !strings.Contains(r.LastError, "as it was") {
		t.Errorf("the row is %+v", r)
	}
	h.wantNewer(errors.New(r.LastError), state)
	acts := []error{errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...)}
	if s.h.Can.Leases {
		acts = append(acts,
			errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...),
			errors.Join(h.requeuer().Release(t.context(), act("release"), r.Seen())...))
	}
	for _, err := range acts {

		h.wantNewer(err, state)
		if !errors.Is(err, semel.ErrState) {
			t.Errorf("%v is not ErrState", err)
		}
	}
	if after := h.row("a", false); after.Revision != r.Revision || after.State != r.State {
		t.Errorf("the row was %+v and is %+v", r, after)
	}
	h.wantActs(r.Number)
}

// wantNewer checks that an error names a state and the newer release.
func (h *fixture[Tx]) wantNewer(err error, state store.RowState) {
	h.t.Helper()
	if err == nil || !strings.Contains(err.Error(), string(state)) || !strings.Contains(err.Error(), "newer release") {
		h.t.Errorf("got %v, want an error that names %s and the newer release", err, state)
	}
}
