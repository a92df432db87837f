package main

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel/memstore"
)

func open(t *testing.T, keys *memstore.Keys, company Company) *Charger {
	t.Helper()
	c, err := NewCharger(keys, company)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var order = Order{ID: "1", Card: "4242", Cents: 1200}

func TestACopyOfAnOrderGetsTheReceiptAndIsNotCharged(t *testing.T) {
	company := &books{receipts: map[string]string{}}
	keys := memstore.NewKeys()
	for range 3 {
		receipt, err := open(t, keys, company).Charge(t.Context(), order)
		if receipt != "receipt-1" || err != nil || company.calls != 1 {
			t.Errorf("%q, %v, %d calls", receipt, err, company.calls)
		}
	}
}

func TestALostAnswerIsAskedForAgainUnderTheSameKey(t *testing.T) {
	company := &books{receipts: map[string]string{}, faults: true}
	c := open(t, memstore.NewKeys(), company)
	if _, err := c.Charge(t.Context(), order); err == nil {
		t.Error("the first answer was to be lost")
	}
	receipt, err := c.Charge(t.Context(), order)
	if receipt != "receipt-1" || err != nil || company.calls != 2 || len(company.receipts) != 1 {
		t.Errorf("%q, %v, %d calls, charged %v", receipt, err, company.calls, company.receipts)
	}
}

// dying is a card company whose calling process dies after the charge.
type dying struct{ *books }

func (d dying) Charge(ctx context.Context, key string, o Order) (string, error) {
	_, _ = d.books.Charge(ctx, key, o)
	panic("the process that called dies here")
}

func TestACrashBetweenTheChargeAndItsRecordChargesNothingTwice(t *testing.T) {
	company := &books{receipts: map[string]string{}}
	keys := memstore.NewKeys()
	func() {
		defer func() { _ = recover() }()
		_, _ = open(t, keys, dying{company}).Charge(t.Context(), order)
	}()
	receipt, err := open(t, keys, company).Charge(t.Context(), order)
	if receipt != "receipt-1" || err != nil || company.calls != 2 || len(company.receipts) != 1 {
		t.Errorf("%q, %v, %d calls, charged %v", receipt, err, company.calls, company.receipts)
	}
}

func TestADeclinedCardIsNotAskedForAgain(t *testing.T) {
	company := &books{receipts: map[string]string{}}
	c := open(t, memstore.NewKeys(), company)
	for range 2 {
		if _, err := c.Charge(t.Context(), Order{ID: "3", Card: "0002", Cents: 500}); !errors.Is(err, ErrDeclined) {
			t.Error(err)
		}
	}
	if company.calls != 1 {
		t.Errorf("%d calls", company.calls)
	}
}
