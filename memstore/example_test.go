package memstore_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// A message that is delivered twice takes effect once.
func Example() {
	ctx := context.Background()
	st := memstore.New()
	scope, err := st.Scope(ctx, "billing", "shop", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		batch, verdicts, err := st.Begin(ctx, store.TxOptions{}, []store.Mark{
			{Scope: scope, ID: []byte("payment 1"), As: store.Applied},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if verdicts[0].Kind == store.Fresh {
			err = batch.Tx(0).Add("balance", 100)
		}
		result := batch.Commit(ctx, store.Ending{})
		fmt.Println(verdicts[0].Kind == store.Fresh, err, result.Outcome == store.Committed)
	}
	fmt.Printf("balance %s\n", st.Get("balance"))
	// Output:
	// true <nil> true
	// false <nil> true
	// balance 100
}
