package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// wantNewer checks that an error says what a newer release wrote.
func (h *house[Tx]) wantNewer(err error, value string) {
	h.t.Helper()
	if err == nil || !strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "newer release") {
		h.t.Errorf("got %v, want an error that names %s and the newer release", err, value)
	}
}

// newer are the laws of what a newer release wrote. A store may refuse to write
// it: then it is not there to be read.
func (s suite[Tx]) newer(t *T) {
	t.Run("trap_T104_an_outcome_of_a_newer_release_is_an_error_and_no_verdict",
		"A marker whose outcome this release does not know is never taken for one that it knows, nor for none.",
		func(t *T) {
			for _, outcome := range []semel.Outcome{6, 100, 255} {
				h := s.opened(t)
				m := h.mark("a")
				m.As = outcome
				b, _, err := h.Store.Begin(t.context(), contract.TxOptions{}, []contract.Mark{m})
				if err != nil || b.Commit(t.context(), contract.Ending{}).Outcome != contract.Committed {
					continue
				}
				for _, again := range []contract.Mark{h.mark("a"), h.print("a", 1)} {
					b, v, err := h.Store.Begin(t.context(), contract.TxOptions{}, []contract.Mark{h.mark("b"), again})
					if err == nil {
						b.Rollback(t.context())
						t.Errorf("the verdict on outcome %d is %v", outcome, v)
					}
					h.wantNewer(err, fmt.Sprint(uint8(outcome)))
				}
				h.wantKinds(h.deliver(h.mark("b")), fresh)
			}
		})
}

// strangers are the laws of rows that a newer release wrote.
func (s suite[Tx]) strangers(t *T) {
	t.Run("trap_T104_a_row_of_a_newer_release_is_shown_and_not_acted_on",
		"A row whose state this release does not know is listed with that state, and neither closed nor run again.",
		func(t *T) {
			h := s.opened(t)
			m := h.mark("a")
			m.As = semel.Parked
			b, _ := h.begin(m)
			row := contract.Row{State: "ASLEEP", LastError: "as it was", Message: &semel.Message{Body: []byte("a")}}
			if b.Commit(t.context(), contract.Ending{Rows: []contract.Row{row}}).Outcome != contract.Committed {
				return
			}
			r := h.row("a", false)
			if r.State != "ASLEEP" || !strings.Contains(r.LastError, "as it was") {
				t.Errorf("the row is %+v", r)
			}
			h.wantNewer(errors.New(r.LastError), "ASLEEP")
			_, retried := h.Store.(contract.RowRetrier[Tx]).BeginRow(t.context(), contract.TxOptions{}, r.Number, r.Revision, act("retry"))
			for _, err := range []error{
				retried,
				h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard")),
				h.inbox().FailRetry(t.context(), r.Number, r.Revision, "failed", act("retry")),
			} {
				h.wantNewer(err, "ASLEEP")
				if !errors.Is(err, semel.ErrState) {
					t.Errorf("%v is not ErrState", err)
				}
			}
			if after := h.row("a", false); after.Revision != r.Revision || after.State != r.State {
				t.Errorf("the row was %+v and is %+v", r, after)
			}
			h.wantActs(r.Number)
		})
}
