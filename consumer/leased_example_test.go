package consumer_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
)

// A handler that asks somebody else, while no transaction is open. The message is
// received first, so that the source is not kept waiting.
func ExampleLeased() {
	source := newListSource(message("order-1", `{"amount":12}`), message("order-1", `{"amount":12}`))
	c, err := consumer.New(consumer.Leased(memstore.New()), func(_ context.Context, _ consumer.Call, m *semel.Message) error {
		fmt.Println("call for", m.Identity.ID)
		return nil
	}, consumer.Config{
		Name: "billing", Source: source, Identity: identity.By("header:id"), Logger: quiet(),
		Strategy: consumer.StrategyInbox, Settle: consumer.SettleAfterReceipt,
	})
	if err == nil {
		err = c.Run(context.Background())
	}
	fmt.Println(err, c.Counts().Received, "received,", c.Counts().Duplicates, "duplicate,", c.Counts().Inbox.Applied, "applied")
	// Output:
	// call for order-1
	// <nil> 1 received, 1 duplicate, 1 applied
}
