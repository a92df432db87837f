package semel_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

// charge is a handler that notes what is to be asked of a provider.
func charge(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	order, err := semel.JSON[struct{ Amount int }](m)
	if err != nil {
		return err
	}
	return tx.Add("charge "+m.IdempotencyKey("charge"), int64(order.Amount))
}

// A handler is a function: its test calls it, in a transaction of the store
// that the test has, with a message that has an identity.
func ExampleNewMessage() {
	ctx, store := context.Background(), memstore.New()
	m := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}, []byte(`{"Amount": 12}`))

	batch, _, err := store.Begin(ctx, semel.TxOptions{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer batch.Rollback(ctx)
	fmt.Println("handler:", charge(ctx, batch.Tx(semel.All), m))
	fmt.Println("key:", m.IdempotencyKey("charge"))

	bad := semel.NewMessage(m.Identity, []byte(`no JSON`))
	fmt.Println("bad body:", charge(ctx, batch.Tx(semel.All), bad))
	// Output:
	// handler: <nil>
	// key: 3d90686a-c7fe-8593-a80e-d51b190f0bf7
	// bad body: permanent failure: the body is no JSON: fault at byte 2
}
