package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
)

// A store that was restored from a backup can be behind its group. The consumer then refuses to run until the group's
// offset is set back. When the offset is set back, the missing messages are delivered again.
func ExampleRecovery() {
	brokers, end := startPaymentBroker(`{"account":"a","amount":30}`, "payment-1", `{"account":"a","amount":12}`, "payment-2")
	defer end()
	ctx := context.Background()
	config := kafka.Config{Brokers: brokers, Topics: []string{"payments"}, Group: "billing", Logger: slog.New(slog.DiscardHandler)}
	run := func(store *memstore.Store) error {
		source, err := kafka.New(config)
		if err != nil {
			return err
		}
		billing, err := consumer.New(store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
			p, err := semel.JSON[Payment](m)
			if err != nil {
				return err
			}
			return tx.Add("balance of "+p.Account, p.Amount)
		}, consumer.Config{Name: "billing", Source: source, Identity: identity.CloudEvents(), IdleExit: 200 * time.Millisecond, Logger: config.Logger})
		if err != nil {
			return err
		}
		return billing.Run(ctx)
	}
	fmt.Println("the first run:", run(memstore.New()))

	store := memstore.New() // as if restored from a backup that is older than all payments
	fmt.Println("it is behind:", errors.Is(run(store), semel.ErrBehind))

	recovery, err := kafka.NewRecovery(config, "billing", store)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer recovery.Close()
	partitions, err := recovery.Compare(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, p := range partitions {
		fmt.Printf("%s/%d is %v: %d records may lack their effects\n", p.Topic, p.Partition, p.Standing, p.Missing())
		partitions[i].Target = p.Start // the restored store knows neither a position nor a start offset
	}
	fmt.Println("the reset:", recovery.Reset(ctx, partitions))
	fmt.Println("the next run:", run(store))
	fmt.Printf("a has %s\n", store.Get("balance of a"))
	// Output:
	// the first run: <nil>
	// it is behind: true
	// payments/0 is behind: 2 records may lack their effects
	// the reset: <nil>
	// the next run: <nil>
	// a has 42
}
