package identity_test

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
)

func ExampleCloudEvents() {
	m := &semel.Message{Headers: semel.Headers{
		{Name: "ce-specversion", Value: []byte("1.0")},
		{Name: "ce-type", Value: []byte("payment.made")},
		{Name: "ce-source", Value: []byte("shop")},
		{Name: "ce-id", Value: []byte("payment-7")},
	}}
	source, id, err := identity.CloudEvents().Identify(m)
	fmt.Println(source, id, err)
	// Output: shop payment-7 <nil>
}

func ExampleBy() {
	m := &semel.Message{
		Headers: semel.Headers{{Name: "producer", Value: []byte("shop")}},
		Body:    []byte(`{"order": 12.0, "line": "a"}`),
	}
	source, id, err := identity.By("body:/order", "body:/line").From("header:producer").Identify(m)
	fmt.Println(source, id, err)

	fmt.Println(identity.By("offset").Validate())
	// Output:
	// shop 2:12,1:a, <nil>
	// "offset" cannot be an identity: a copy that is sent again, moved to another topic or restored has other coordinates, and another message may get the same; use what the producer set once for the message: an id header (header:ce-id), a field of the body (body:/id), or a business key of several fields
}

func ExampleFingerprintOf() {
	f := identity.FingerprintOf("body:/amount", "body:/account")
	first, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"amount": 10, "account": "a"}`)})
	again, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"account": "a", "amount": 10.0, "note": "new"}`)})
	other, _ := f.Fingerprint(&semel.Message{Body: []byte(`{"amount": 11, "account": "a"}`)})
	fmt.Println(first.Conflicts(again), first.Conflicts(other))
	// Output: false true
}
