package storetest_test

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// sendsParked writes what is to be parked as if it were to be worked on.
type sendsParked struct{ *memstore.Store }

func (s sendsParked) ParkIn(ctx context.Context, tx *memstore.Tx, marks []contract.Mark, messages []*semel.Message, _ semel.Reason) ([]contract.Verdict, error) {
	return s.ReceiveIn(ctx, tx, marks, messages)
}

// writesAgain writes the row of what was there before anew.
type writesAgain struct{ *memstore.Store }

func (s writesAgain) ReceiveIn(ctx context.Context, tx *memstore.Tx, marks []contract.Mark, messages []*semel.Message) ([]contract.Verdict, error) {
	for i := range marks {
		marks[i].Fingerprint = semel.Fingerprint{}
	}
	return s.Store.ReceiveIn(ctx, tx, marks, messages)
}

// suppressesNothing records the act, and lets the row be worked on.
type suppressesNothing struct{ *memstore.Store }

func (s suppressesNothing) Suppress(ctx context.Context, number, revision int64, a contract.Act) error {
	if err := s.Store.Suppress(ctx, number, revision, a); err != nil {
		return err
	}
	rows, err := s.Rows(ctx, contract.RowFilter{Numbers: []int64{number}})
	if err != nil {
		return err
	}
	return errors.Join(s.Requeue(ctx, a, contract.RowRevision{Number: number, Revision: rows[0].Revision})...)
}

// intentFaults are faults in what handlers write down for other consumers.
var intentFaults = []fault{
	{"what is to be parked waits to be worked on", "law_1_what_a_handler_writes_down", func(s *memstore.Store) contract.TxStore[*memstore.Tx] { return sendsParked{s} }},
	{"another content passes for a copy", "law_7_what_was_written_down", func(s *memstore.Store) contract.TxStore[*memstore.Tx] { return writesAgain{s} }},
	{"what is suppressed is claimed", "E4_what_is_suppressed", func(s *memstore.Store) contract.TxStore[*memstore.Tx] { return suppressesNothing{s} }},
}
