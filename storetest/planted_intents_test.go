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

// emitsWrong is a store with a fault in sending intents again.
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

// omitsCause is a store that does not keep the cause of a row.
type omitsCause struct{ *memstore.Store }

func (s omitsCause) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	for i := range marks {
		marks[i].Cause = nil
	}
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reason)
}

// settlesCallsInTx is a store that records the outcome of a call as known if a transaction has ended the call's claim.
type settlesCallsInTx struct{ *memstore.Store }

func (s settlesCallsInTx) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
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
	{"the cause of a row is not stored", "C12_a_sent_intent_is_due_again_under_its_identity", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return omitsCause{s} }},
	{"a start does not report a repetition", "C12_a_sent_intent_is_due_again_under_its_identity", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Again = false }}
	}},
	{"every first call is reported as a repetition", "C12_E3_an_intent_resolved_as_not_done_is_sent_for_the_first_time", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Again = true }}
	}},
	{"each copy sends again, however many arrive", "C12_an_intent_is_not_sent_again_too_early_or_after_its_window", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		o.Every = 0
		return s.Emit(ctx, o)
	})},
	{"an intent is sent again after the endpoint's window", "C12_an_intent_is_not_sent_again_too_early_or_after_its_window", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		o.Windows = nil
		return s.Emit(ctx, o)
	})},
	{"the window of one sender applies to all", "C12_an_intent_is_not_sent_again_too_early_or_after_its_window", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		least := time.Duration(0)
		for _, window := range o.Windows {
			if least == 0 || window < least {
				least = window
			}
		}
		o.Windows = map[string]time.Duration{"billing": least}
		return s.Emit(ctx, o)
	})},
	{"concurrent copies all count the intent", "C12_one_of_many_copies_sends_an_intent_again", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		did.Again, did.Left = did.Again+did.Left, 0
		return did, err
	})},
	{"an intent that was completed in a transaction is sent again", "C12_law_1_an_intent_that_was_not_sent_is_unchanged", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return settlesCallsInTx{s} }},
	{"a parked intent is sent again", "C12_law_1_an_intent_that_was_not_sent_is_unchanged", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		rows, _ := s.Rows(ctx, store.RowFilter{States: []store.RowState{store.StateParked}})
		for _, r := range rows {
			_ = errors.Join(s.Requeue(ctx, store.Act{Verb: "retry", Who: "nobody"}, r.Seen())...)
		}
		return did, err
	})},
	{"an intent without body is sent empty", "C12_an_intent_without_body_is_not_sent_again", emitting(func(s *memstore.Store, ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
		did, err := s.Emit(ctx, o)
		did.Again, did.Left = did.Again+did.Left, 0
		return did, err
	})},
}

// ignoresReason is a store that keeps messages as waiting although they should be parked.
type ignoresReason struct{ *memstore.Store }

func (s ignoresReason) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, _ semel.Reason) ([]store.Verdict, error) {
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reasonname.None)
}

// writesAgain is a store that writes a second row for an identity that already has a row.
type writesAgain struct{ *memstore.Store }

func (s writesAgain) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	for i := range marks {
		marks[i].Fingerprint = semel.Fingerprint{}
	}
	return s.Store.ReceiveIn(ctx, tx, marks, messages, reason)
}

// suppressesNothing is a store that records that a row was suppressed, although the row can still be claimed.
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

// intentFaults lists faults in how messages for other consumers are written.
var intentFaults = []fault{
	{"a message that should be parked is due", "law_1_an_intent_commits_with_its_handlers_transaction", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return ignoresReason{s} }},
	{"other content counts as a copy", "law_7_an_intent_that_exists_is_not_changed", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return writesAgain{s} }},
	{"a suppressed row is claimed", "E4_a_suppressed_intent_waits_for_an_operator", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return suppressesNothing{s} }},
}
