// Command card-charging charges cards with leased keys. Each order is charged once, although orders arrive
// twice, responses are lost, and one process dies between the charge and its record.
//
//	go run ./examples/card-charging
//
// The keys are stored in memory, so the example runs without a server. The card company is a function of
// this program. In production, pass a durable store to leasedkey.New: PostgreSQL or SQLite (sqlstore,
// pgxstore) or Redis (redisstore).
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

// Order is an order that must be paid.
type Order struct {
	ID    string
	Card  string
	Cents int64
}

// Charger charges orders at a card company.
type Charger struct {
	keys    *leasedkey.Keys
	company Company
}

// Company is a card company that charges once for each key.
type Company interface {
	Charge(ctx context.Context, key string, o Order) (receipt string, err error)
}

// ErrDeclined means that the company rejects the card.
var ErrDeclined = errors.New("the card was declined")

// NewCharger returns a Charger. Several Chargers may share a store of keys.
func NewCharger(st keystore.Store, company Company) (*Charger, error) {
	keys, err := leasedkey.New(st, leasedkey.Config{
		Consumer:      "card-charging",
		Keep:          30 * 24 * time.Hour, // longer than the maximum delay of an order's copy
		Window:        23 * time.Hour,      // the company remembers a key for one day
		AllowVolatile: "an example keeps its keys in memory",
	})
	return &Charger{keys, company}, err
}

// Charge charges an order and returns the receipt. If the order arrives again, Charge returns the same receipt.
func (c *Charger) Charge(ctx context.Context, o Order) (receipt string, err error) {
	answer, err := c.keys.Do(ctx, leasedkey.Request{Source: "shop", ID: o.ID}, func(ctx context.Context, a leasedkey.Attempt) ([]byte, error) {
		receipt, err := c.company.Charge(ctx, a.IdempotencyKey, o)
		if errors.Is(err, ErrDeclined) {
			return nil, semel.Permanent(err) // the message fails for good
		}
		return []byte(receipt), err // for any other error the outcome is unknown: repeat with the same key
	})
	switch {
	case err != nil:
		return "", err
	case answer.State == keystore.Completed:
		return string(answer.Result), nil
	case answer.State == keystore.Failed:
		return "", ErrDeclined
	}
	return "", fmt.Errorf("order %s is not charged yet: its key is %v; ask again", o.ID, answer.State)
}

func main() {
	company := &books{receipts: map[string]string{}, faults: true}
	charger, err := NewCharger(memstore.NewKeys(), company)
	if err != nil {
		log.Fatal(err)
	}
	orders := []Order{{"1", "4242", 1200}, {"2", "4242", 800}, {"1", "4242", 1200}, {"3", "0002", 500}}
	for _, o := range orders {
		for try := 1; try <= 3; try++ {
			receipt, err := charger.Charge(context.Background(), o)
			fmt.Printf("order %s, try %d: %q, %v\n", o.ID, try, receipt, err)
			if err == nil || errors.Is(err, ErrDeclined) {
				break
			}
		}
	}
	fmt.Printf("%d calls, %d charges\n", company.calls, len(company.receipts))
}
