package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/file"
)

func ExampleStdin() {
	input := strings.NewReader(`{"specversion":"1.0","id":"7","source":"/shop","type":"paid","data":{"amount":12}}
{"id":7}
`)
	source := file.Stdin(input, file.Options{Format: file.CloudEvents})
	ctx := context.Background()
	for {
		deliveries, err := source.Fetch(ctx, contract.Bound{Messages: 100, Bytes: 1 << 20})
		if errors.Is(err, contract.ErrEnd) {
			break
		}
		var settlements []contract.Settlement
		for i := range deliveries {
			d := &deliveries[i]
			d.Decode(nil) // which consumers do themselves
			detail, _ := d.Message.Headers.Get(file.HeaderDetail)
			fmt.Printf("%s|%s|%s|%s\n", d.Message.ID(), d.Message.Body, d.Refused, detail)
			settlements = append(settlements, contract.Settlement{Delivery: d, Kind: semel.Ack})
		}
		_, _ = source.Settle(ctx, settlements)
	}
	_ = source.Close(ctx)
	// Output:
	// 7|{"amount":12}||
	// |{"id":7}|malformed|the attribute id must be a string
}

func ExampleSource_Validate() {
	payments := file.Open("payments.jsonl", file.Options{})
	if err := payments.Validate(); errors.Is(err, fs.ErrNotExist) { // a consumer would wait for it
		fmt.Println("payments.jsonl is not here")
	}
	// Output:
	// payments.jsonl is not here
}
