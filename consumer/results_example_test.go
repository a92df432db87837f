package consumer_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// The handler stores a result. OnDuplicate gets the result when the message is delivered again.
func ExampleKeepResult() {
	orders := 0
	place := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		orders++
		return consumer.KeepResult(ctx, tx, m, fmt.Appendf(nil, "order %d", orders))
	}
	c := config(newListSource(message("a", "{}"), message("b", "{}"), message("a", "{}")))
	c.OnDuplicate = func(_ context.Context, m *semel.Message, result []byte) error {
		fmt.Printf("%s was placed before: %s\n", m.Identity.ID, result)
		return nil
	}
	placing, err := consumer.New(memstore.New(), place, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := placing.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(orders, "orders")
	// Output:
	// a was placed before: order 1
	// 2 orders
}
