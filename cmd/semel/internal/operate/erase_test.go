package operate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// newParkedStore returns a store with n parked messages. The messages with even numbers are then
// discarded.
func newParkedStore(t *testing.T, n int, options ...memstore.Option) *memstore.Store {
	t.Helper()
	s := memstore.New(options...)
	scope, err := s.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m := store.Mark{Scope: scope, ID: fmt.Append(nil, "m", i), As: store.Parked}
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{m})
		if err != nil {
			t.Fatal(err)
		}
		row := store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("Ana")}}
		if i%2 == 0 {
			row.State = store.StateDiscarded
		}
		b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}})
	}
	return s
}

func countBodies(t *testing.T, s *memstore.Store) (n int) {
	t.Helper()
	rows, err := s.Rows(t.Context(), store.RowFilter{Bodies: true, Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(r.Message.Body) > 0 {
			n++
		}
	}
	return n
}

func newBox(s *memstore.Store) Box {
	return Box{Store: "shop", Inbox: s, Requeuer: s, Resolver: s}
}

func TestAnErasureReachesAllRows(t *testing.T) {
	t.Run("P4_what_is_unfinished_is_left_and_counted", func(t *testing.T) {
		s := newParkedStore(t, 1001)
		told := 0
		r, err := newBox(s).Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Shown: 7, Progress: func(ErasureReport) { told++ }})
		if err != nil || r.Identities != 501 || r.Inbox != 501 || r.Left != 500 || len(r.List) != 7 || r.List[0].Why != admin.ErasureUnfinished || told < 5 || countBodies(t, s) != 500 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("P4_with_discard_nothing_is_left", func(t *testing.T) {
		s := newParkedStore(t, 1001)
		r, err := newBox(s).Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Discard: true})
		if err != nil || r.Identities != 1001 || r.Discarded != 500 || r.Left != 0 || countBodies(t, s) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("P4_a_dry_run_discards_nothing", func(t *testing.T) {
		s := newParkedStore(t, 10)
		r, err := newBox(s).Erase(t.Context(), s, Erasure{Discard: true, DryRun: true})
		if err != nil || r.Identities != 5 || r.Discarded != 0 || r.Left != 5 || countBodies(t, s) != 10 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("P4_ids_are_asked_for_in_pieces_each_once", func(t *testing.T) {
		s := newParkedStore(t, 3000)
		var ids []string
		for i := range 2000 {
			ids = append(ids, fmt.Sprint("m", i), "nobody's")
		}
		r, err := newBox(s).Erase(t.Context(), s, Erasure{Filter: admin.ErasureFilter{IDs: ids}, Who: "ana", Why: "x"})
		if err != nil || r.Identities != 1000 || r.Left != 1000 {
			t.Errorf("%d erased, %d left, %v", r.Identities, r.Left, err)
		}
	})
	t.Run("P4_one_that_failed_on_its_way_goes_on", func(t *testing.T) {
		calls, down := 0, errors.New("away")
		s := newParkedStore(t, 1000, memstore.Fail(func(op string) error {
			if op == "erase" {
				if calls++; calls == 3 {
					return down
				}
			}
			return nil
		}))
		r, err := newBox(s).Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Discard: true})
		if !errors.Is(err, down) || r.Identities == 0 || countBodies(t, s) == 0 || int(r.Identities) != 1000-countBodies(t, s) {
			t.Errorf("%+v, %v", r, err)
		}
		again, err := newBox(s).Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Discard: true})
		if err != nil || r.Identities+again.Identities != 1000 || countBodies(t, s) != 0 {
			t.Errorf("%+v and then %+v, %v", r, again, err)
		}
	})
}

func TestErasedRowsCannotBeProcessed(t *testing.T) {
	s := newParkedStore(t, 2)
	if _, err := newBox(s).Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Discard: true}); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []admin.Verb{admin.Retry, admin.Send, admin.Discard, admin.Release, admin.Resolve, admin.Suppress, admin.Skip} {
		t.Run("P4_no_"+string(verb), func(t *testing.T) {
			for r, err := range newBox(s).Carry(t.Context(), Order{Verb: verb, Who: "ana", Why: "x", Outcome: admin.ResolvedDone}) {
				if err != nil || r.Result != Refused || r.Error == "" || r.Reason != reasonname.Erased {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}

// lockedInbox is an inbox whose rows are locked, so that Discard fails.
type lockedInbox struct{ store.Inbox }

func (lockedInbox) Discard(_ context.Context, _ store.Act, rows ...store.RowRevision) (errs []error) {
	for range rows {
		errs = append(errs, errors.New("canceling statement due to lock timeout"))
	}
	return errs
}

func TestRowsThatCannotBeDiscardedAreReported(t *testing.T) {
	t.Run("P4_a_row_that_is_locked_is_busy_and_the_error_is_told", func(t *testing.T) {
		s := newParkedStore(t, 3)
		b := newBox(s)
		b.Inbox = lockedInbox{s}
		r, err := b.Erase(t.Context(), s, Erasure{Who: "ana", Why: "x", Discard: true})
		if err != nil || r.Left != 1 || len(r.List) != 1 || r.List[0].Why != admin.ErasureBusy || r.List[0].Error == "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
