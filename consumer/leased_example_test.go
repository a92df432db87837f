package consumer_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

// The handler calls another system while no transaction is open. The message is stored before the call, so
// the source does not wait for the call. The second delivery of the message is a duplicate.
func ExampleNewLeased() {
	taken, calls := map[string]bool{}, 1
	server := provider(taken, &calls)
	defer server.Close()
	order := semel.NewMessage(semel.Key{Source: "shop", ID: "order-17"}, []byte(`{"amount":12}`))
	c, err := withoutTransaction(memstore.New(), newListSource(order, order), server.URL)
	if err == nil {
		err = c.Run(context.Background())
	}
	counts := c.Counts()
	fmt.Println(err, counts.Received, "received,", counts.Duplicates, "duplicate,", counts.Inbox.Applied, "applied, taken:", len(taken))
	// Output: <nil> 1 received, 1 duplicate, 1 applied, taken: 1
}
