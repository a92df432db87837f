package semel_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func ExampleMessage_IdempotencyKey() {
	// The engine sets Identity before a handler sees the message.
	m := &semel.Message{Identity: semel.Key{Consumer: "billing", Source: "shop", ID: "order-7"}}
	fmt.Println(m.IdempotencyKey("charge"))
	fmt.Println(m.IdempotencyKey("refund"))
	// Output:
	// 4fb4ea48-b05a-8d84-87fe-27243e3594cc
	// 627c2202-3858-87e6-baac-d0e571944cc3
}

func ExampleMessage_OutputID() {
	m := &semel.Message{Identity: semel.Key{Consumer: "billing", Source: "shop", ID: "order-7"}}
	fmt.Println(m.OutputID("receipt", "alice"))
	fmt.Println(m.OutputName("receipt", "alice@example.com"))
	// Output:
	// 673ad387-e799-8822-938d-aa3cf00d7bc9
	// billing/shop/order-7/receipt/alice%40example.com
}

func ExampleMessage_Causation() {
	m := &semel.Message{
		Identity: semel.Key{Consumer: "billing", Source: "shop", ID: "order-7"},
		Headers:  semel.Headers{{Name: "correlation-id", Value: []byte("visit-1")}},
	}
	for _, h := range m.Causation() {
		fmt.Printf("%s: %s\n", h.Name, h.Value)
	}
	// Output:
	// semel-causation-id: order-7
	// semel-correlation-id: visit-1
}

// charge is a handler that writes, in its transaction, the request for a payment provider.
func charge(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	order, err := semel.JSON[struct{ Amount int }](m)
	if err != nil {
		return err
	}
	return tx.Add("charge "+m.IdempotencyKey("charge"), int64(order.Amount))
}

// A handler is a function. A test of a handler calls the function with a transaction of a store and with a message that
// has an identity.
func ExampleNewMessage() {
	ctx, st := context.Background(), memstore.New()
	m := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}, []byte(`{"Amount": 12}`))

	batch, _, err := st.Begin(ctx, store.TxOptions{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer batch.Rollback(ctx)
	fmt.Println("handler:", charge(ctx, batch.Tx(store.All), m))
	fmt.Println("key:", m.IdempotencyKey("charge"))

	bad := semel.NewMessage(m.Identity, []byte(`no JSON`))
	fmt.Println("bad body:", charge(ctx, batch.Tx(store.All), bad))
	// Output:
	// handler: <nil>
	// key: 3d90686a-c7fe-8593-a80e-d51b190f0bf7
	// bad body: permanent failure: the body is no JSON: fault at byte 2
}
