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
	"github.com/twmb/franz-go/pkg/kgo"
)

// If a message can never be applied, its record is copied unchanged to the topic for dead letters. The copy
// has headers with the reason and the origin.
func ExampleConfig_deadLetters() {
	brokers, end := startPaymentBroker(`{"account":"closed","amount":30}`, "payment-1")
	defer end()
	refuse := func(context.Context, *memstore.Tx, *semel.Message) error {
		return semel.Permanent(errors.New("the account is closed"))
	}
	run(kafka.Config{Brokers: brokers, Topics: []string{"payments"}, Group: "billing", DeadLetters: "payments.dead"}, refuse)

	letters, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("payments.dead"))
	if err != nil {
		panic(err)
	}
	defer letters.Close()
	for _, letter := range letters.PollFetches(context.Background()).Records() {
		fmt.Printf("%s\n", letter.Value)
		for _, h := range letter.Headers {
			switch h.Key {
			case kafka.HeaderReason, kafka.HeaderError, kafka.HeaderTopic, kafka.HeaderOffset:
				fmt.Printf("%s: %s\n", h.Key, h.Value)
			}
		}
	}
	// Output:
	// {"account":"closed","amount":30}
	// semel-reason: permanent failure
	// semel-error: permanent failure: the account is closed
	// semel-topic: payments
	// semel-offset: 0
}

// With a pattern, the source also reads topics that are created later. In this example, Start.Now applies to the topics
// that exist when the group first joins: the source skips the existing records of these topics. Topics that are created
// later are read from their beginning.
func ExampleConfig_topicPattern() {
	brokers, end := startPaymentBroker(`{"account":"a","amount":30}`, "payment-1")
	defer end()
	applied := func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
		fmt.Println(m.Topic, m.Identity.ID)
		return nil
	}
	c := kafka.Config{Brokers: brokers, TopicPattern: `payments(\.eu)?`, Group: "billing", Start: kafka.Start{Now: true}}
	store := memstore.New()
	runOn(store, c, applied)
	publish(brokers, "payments.eu", "payment-2")
	publish(brokers, "payments.us", "payment-3")
	runOn(store, c, applied)
	// Output:
	// payments.eu payment-2
}

type handler func(context.Context, *memstore.Tx, *semel.Message) error

// run processes all messages, and then ends.
func run(c kafka.Config, handle handler) { runOn(memstore.New(), c, handle) }

func runOn(store *memstore.Store, c kafka.Config, handle handler) {
	source, err := kafka.New(c)
	if err != nil {
		panic(err)
	}
	policy := consumer.Config{Name: "billing", Source: source, Logger: slog.New(slog.DiscardHandler), Identity: identity.CloudEvents(), IdleExit: 200 * time.Millisecond}
	if c.DeadLetters != "" {
		policy.Retry.OnExhausted = consumer.ActionDeadLetter
	}
	consumer, err := consumer.New(store, handle, policy)
	if err == nil {
		err = consumer.Run(context.Background())
	}
	if err != nil {
		panic(err)
	}
}
