package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

func ExampleStdin() {
	input := strings.NewReader(`{"specversion":"1.0","id":"7","source":"/shop","type":"paid","data":{"amount":12}}
{"id":7}
`)
	src := file.Stdin(input, file.Options{Format: file.CloudEvents})
	ctx := context.Background()
	for {
		deliveries, err := src.Fetch(ctx, source.Bound{Messages: 100, Bytes: 1 << 20})
		if errors.Is(err, source.ErrEnd) {
			break
		}
		var settlements []source.Settlement
		for i := range deliveries {
			d := &deliveries[i]
			d.Decode(nil) // a consumer decodes by itself
			detail, _ := d.Message.Headers.Get(file.HeaderDetail)
			fmt.Printf("%s|%s|%s|%s\n", d.Message.ID(), d.Message.Body, d.Refused, detail)
			settlements = append(settlements, source.Settlement{Delivery: d, Kind: semel.Ack})
		}
		_, _ = src.Settle(ctx, settlements)
	}
	_ = src.Close(ctx)
	// Output:
	// 7|{"amount":12}||
	// |{"id":7}|malformed|the attribute id must be a string
}

func ExampleSource_Validate() {
	payments := file.Open("payments.jsonl", file.Options{})
	if err := payments.Validate(); errors.Is(err, fs.ErrNotExist) { // a consumer would wait for the file
		fmt.Println("payments.jsonl is not here")
	}
	// Output:
	// payments.jsonl is not here
}
