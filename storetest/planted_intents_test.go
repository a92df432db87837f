package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// emitsWrong is a store with a fault in what is sent again.
type emitsWrong struct {
	*memstore.Store
	emit func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error)
}

func (s emitsWrong) Emit(ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
	return s.emit(s.Store, ctx, o)
}

func emitting(emit func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error)) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return emitsWrong{s, emit} }
}

// causesNothing forgets what caused a row.
type causesNothing struct{ *memstore.Store }

func (s causesNothing) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	for i := range marks {
		marks[i].Cause = nil
	}
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reason)
}

// knowsCallsInside takes what became of a call for known where a transaction has ended it.
type knowsCallsInside struct{ *memstore.Store }

func (s knowsCallsInside) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := s.Store.Begin(ctx, o, marks)
	return endsCalls{b, s.Store}, v, err
}

type endsCalls struct {
	store.Batch[*memstore.Tx]
	store *memstore.Store
}

func (b endsCalls) Commit(ctx context.Context, e store.Ending) store.Result {
	if len(e.Claims) == 0 {
		return b.Batch.Commit(ctx, e)
	}
	b.Rollback(ctx)
	if _, err := b.store.End(ctx, e.Claims); err != nil {
		return store.Result{Outcome: store.NotCommitted, Err: err}
	}
	return store.Result{Outcome: store.Committed}
}

var emissionFaults = []fault{
	{"what caused a row is forgotten", "C12_what_was_sent_is_due_again", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return causesNothing{s} }},
	{"a sender is not told that it sends again", "C12_what_was_sent_is_due_again", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Again = false }}
	}},
	{"every first call is one that is made again", "C12_E3_what_somebody_found_not_done", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Again = true }}
	}},
	{"however many come, each sends again", "C12_what_ended_not_long_ago", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		o.Every = 0
		return s.Emit(ctx, o)
	})},
	{"what the other side has forgotten is sent again", "C12_what_ended_not_long_ago", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		o.Windows = nil
		return s.Emit(ctx, o)
	})},
	{"the window of one sender is that of all", "C12_what_ended_not_long_ago", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		least := time.Duration(0)
		for _, window := range o.Windows {
			if least == 0 || window < least {
				least = window
			}
		}
		o.Windows = map[string]time.Duration{"billing": least}
		return s.Emit(ctx, o)
	})},
	{"each of many at once counts it", "C12_of_many_at_once", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		did.Again, did.Left = did.Again+did.Left, 0
		return did, err
	})},
	{"what a transaction has done is done again", "C12_law_1_what_was_not_sent", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return knowsCallsInside{s} }},
	{"what is parked is sent again", "C12_law_1_what_was_not_sent", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		rows, _ := s.Rows(ctx, store.RowFilter{States: []store.RowState{store.StateParked}})
		for _, r := range rows {
			_ = errors.Join(s.Requeue(ctx, store.Act{Verb: "retry", Who: "nobody"}, r.Seen())...)
		}
		return did, err
	})},
	{"what has lost its body is sent empty", "C12_what_has_lost_its_body", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		did.Again, did.Left = did.Again+did.Left, 0
		return did, err
	})},
}

// sendsParked writes what is to be parked as if it were to be worked on.
type sendsParked struct{ *memstore.Store }

func (s sendsParked) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, _ semel.Reason) ([]store.Verdict, error) {
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reasonname.None)
}

// writesAgain writes the row of what was there before anew.
type writesAgain struct{ *memstore.Store }

func (s writesAgain) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	for i := range marks {
		marks[i].Fingerprint = semel.Fingerprint{}
	}
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reason)
}

// suppressesNothing records the act, and lets the row be worked on.
type suppressesNothing struct{ *memstore.Store }

func (s suppressesNothing) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	errs := s.Store.Suppress(ctx, a, rows...)
	for i, r := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}})
		if errs[i] == nil && err == nil && len(now) == 1 {
			errs[i] = errors.Join(s.Requeue(ctx, a, now[0].Seen())...)
		}
	}
	return errs
}

// intentFaults are faults in what handlers write down for other consumers.
var intentFaults = []fault{
	{"what is to be parked waits to be worked on", "law_1_what_a_handler_writes_down", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return sendsParked{s} }},
	{"another content passes for a copy", "law_7_what_was_written_down", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return writesAgain{s} }},
	{"what is suppressed is claimed", "E4_what_is_suppressed", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return suppressesNothing{s} }},
}
