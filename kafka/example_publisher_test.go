package kafka_test

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// The consumer publishes the payments of one topic to another topic. Each payment is published at least once,
// and every copy has the id of the payment.
func ExampleNewPublisher() {
	brokers, end := startPaymentBroker(`{"amount":30}`, "payment-1", `{"amount":12}`, "payment-2", `{"amount":30}`, "payment-1")
	defer end()

	source, err := kafka.New(kafka.Config{Brokers: brokers, Topics: []string{"payments"}, Group: "receipts"})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Topic: "receipts"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.Close()
	running, err := consumer.NewLeased(memstore.New(), func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
		if err := publisher.Publish(ctx, m); err != nil {
			return err
		}
		fmt.Printf("%s is published\n", m.Identity.ID)
		return nil
	}, consumer.Config{
		Name: "receipts", Source: source, Identity: identity.CloudEvents(), Workers: 1,
		Strategy: consumer.StrategyInbox, AckOnReceipt: true, IdleExit: 200 * time.Millisecond,
		Provider: consumer.Provider{Window: consumer.WindowAlways}, // readers of the topic always recognise copies
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := running.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// payment-1 is published
	// payment-2 is published
}

var _ = publishAll[*memstore.Tx]

// publishAll publishes incoming messages to another topic.
func publishAll[Tx any](ctx context.Context, st store.TxStore[Tx], src source.Source, brokers []string) error {
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Topic: "receipts"})
	if err != nil {
		return err
	}
	defer publisher.Close()
	running, err := consumer.NewLeased(st, func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
		return publisher.Publish(ctx, m)
	}, consumer.Config{
		Name: "receipts", Source: src, Identity: identity.CloudEvents(),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true, Workers: 16,
		Provider: consumer.Provider{Window: consumer.WindowAlways}, // readers of the topic always recognise copies
	})
	if err != nil {
		return err
	}
	return running.Run(ctx)
}
