package storetest_test

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// sendsParked writes what is to be parked as if it were to be worked on.
type sendsParked struct{ *memstore.Store }

func (s sendsParked) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []store.Mark, messages []*semel.Message, _ semel.Reason) ([]store.Verdict, error) {
	return s.Store.ReceiveIn(ctx, tx, marks, messages, semel.ReasonNone)
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
