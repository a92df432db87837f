package semel_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
)

func ExampleCloudEvents() {
	m := &semel.Message{Headers: semel.Headers{
		{Name: "ce-specversion", Value: []byte("1.0")},
		{Name: "ce-type", Value: []byte("payment.made")},
		{Name: "ce-source", Value: []byte("shop")},
		{Name: "ce-id", Value: []byte("payment-7")},
	}}
	source, id, err := semel.CloudEvents().Identify(m)
	fmt.Println(source, id, err)
	// Output: shop payment-7 <nil>
}

func ExampleBy() {
	m := &semel.Message{
		Headers: semel.Headers{{Name: "producer", Value: []byte("shop")}},
		Body:    []byte(`{"order": 12.0, "line": "a"}`),
	}
	source, id, err := semel.By("body:/order", "body:/line").From("header:producer").Identify(m)
	fmt.Println(source, id, err)

	fmt.Println(semel.By("offset").Validate())
	// Output:
	// shop 2:12,1:a, <nil>
	// "offset" cannot be an identity: a copy that is sent again, moved to another topic or restored has other coordinates, and another message may get the same; use what the producer set once for the message: an id header (header:ce-id), a field of the body (body:/id), or a business key of several fields
}

func ExampleParseSelector() {
	amount, err := semel.ParseSelector("body:/amount")
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := amount.Value(&semel.Message{Body: []byte(`{"amount": 9007199254740993.10}`)})
	fmt.Println(v.Number(), v.Decimal(), err)

	_, err = semel.ParseSelector("heder:ce-id")
	fmt.Println(err)
	// Output:
	// 9007199254740993.10 9007199254740993.1 <nil>
	// unknown selector "heder:ce-id"; did you mean "header"? use one of header:NAME, body:/json/pointer, body:, key, topic, type, subject, time, id, source, const:TEXT, partition, offset
}

func ExampleFingerprintOf() {
	f := semel.FingerprintOf("body:/amount", "body:/account")
	first, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"amount": 10, "account": "a"}`)})
	again, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"account": "a", "amount": 10.0, "note": "new"}`)})
	other, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"amount": 11, "account": "a"}`)})
	fmt.Println(first.Conflicts(again), first.Conflicts(other))
	// Output: false true
}

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

func ExampleByType() {
	type tx struct{} // what the store's transactions are
	handle := semel.ByType(map[string]func(context.Context, tx, *semel.Message) error{
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
	// unknown_type: no handler for type "payment.lost", schema ""; there are handlers for payment.made, payment.made@2
}
