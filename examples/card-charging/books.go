package main

import (
	"context"
	"errors"
	"fmt"
)

// books is a card company that charges once for each key. If the field faults is set, the first response to each new
// charge is lost.
type books struct {
	receipts map[string]string // by key
	calls    int
	faults   bool
}

// Charge implements Company.
func (b *books) Charge(_ context.Context, key string, o Order) (string, error) {
	b.calls++
	if o.Card == "0002" {
		return "", ErrDeclined
	}
	if receipt, known := b.receipts[key]; known {
		return receipt, nil
	}
	b.receipts[key] = fmt.Sprintf("receipt-%d", len(b.receipts)+1)
	if b.faults {
		return "", errors.New("the connection was lost before the answer came")
	}
	return b.receipts[key], nil
}
