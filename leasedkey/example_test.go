package leasedkey_test

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

// A payment is charged once, although two requests ask for the charge.
func Example() {
	keys, err := leasedkey.New(memstore.NewKeys(), leasedkey.Config{
		Consumer:      "billing",
		Keep:          30 * 24 * time.Hour,
		Window:        24 * time.Hour, // the provider knows a key for a day
		AllowVolatile: "an example keeps its keys in memory",
	})
	if err != nil {
		panic(err)
	}
	charge := func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
		fmt.Println("the provider is called, attempt", a.Number)
		return []byte("receipt 17"), nil
	}
	for range 2 {
		answer, err := keys.Do(context.Background(), leasedkey.Request{Source: "shop", ID: "order-1"}, charge)
		fmt.Println(answer.State, string(answer.Result), err)
	}
	// Output:
	// the provider is called, attempt 1
	// completed receipt 17 <nil>
	// completed receipt 17 <nil>
}
