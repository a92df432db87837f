package consumer_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
)

func ExampleByType() {
	type tx struct{} // what the store's transactions are
	handle := consumer.ByType(map[string]func(context.Context, tx, *semel.Message) error{
		"payment.made":   func(context.Context, tx, *semel.Message) error { fmt.Println("first version"); return nil },
		"payment.made@2": func(context.Context, tx, *semel.Message) error { fmt.Println("second version"); return nil },
	})
	for _, a := range []semel.Attributes{
		{Type: "payment.made"},
		{Type: "payment.made", DataSchema: "https://example.com/schemas/payment/2"},
		{Type: "payment.lost"},
	} {
		if err := handle(context.Background(), tx{}, &semel.Message{Attributes: a}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// first version
	// second version
	// unknown type: no handler for type "payment.lost", schema ""; there are handlers for payment.made, payment.made@2
}
