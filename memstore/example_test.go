package memstore_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// A message that is delivered twice takes effect once.
func Example() {
	ctx := context.Background()
	store := memstore.New()
	scope, err := store.Scope(ctx, "billing", "shop", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		batch, verdicts, err := store.Begin(ctx, contract.TxOptions{}, []contract.Mark{
			{Scope: scope, ID: []byte("payment 1"), As: contract.Applied},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if verdicts[0].Kind == contract.Fresh {
			err = batch.Tx(0).Add("balance", 100)
		}
		result := batch.Commit(ctx, contract.Ending{})
		fmt.Println(verdicts[0].Kind == contract.Fresh, err, result.Outcome == contract.Committed)
	}
	fmt.Printf("balance %s\n", store.Get("balance"))
	// Output:
	// true <nil> true
	// false <nil> true
	// balance 100
}
