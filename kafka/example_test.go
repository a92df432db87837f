package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Payment is the body of a message.
type Payment struct {
	Account string
	Amount  int64
}

// Each payment is applied once, although the producer sent one payment twice.
func Example() {
	brokers, end := startPaymentBroker(
		`{"account":"a","amount":30}`, "payment-1",
		`{"account":"a","amount":12}`, "payment-2",
		`{"account":"a","amount":30}`, "payment-1",
	)
	defer end()

	source, err := kafka.New(kafka.Config{Brokers: brokers, Topics: []string{"payments"}, Group: "billing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memstore.New()
	running, err := consumer.New(store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		p, err := semel.JSON[Payment](m)
		if err != nil {
			return err
		}
		return tx.Add("balance of "+p.Account, p.Amount)
	}, consumer.Config{Name: "billing", Source: source, Identity: identity.CloudEvents(), IdleExit: 200 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := running.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	counts := running.Counts()
	fmt.Printf("%d deliveries, %d applied, %d duplicates\n", counts.Deliveries, counts.Applied, counts.Duplicates)
	fmt.Printf("a has %s\n", store.Get("balance of a"))
	// Output:
	// 3 deliveries, 2 applied, 1 duplicates
	// a has 42
}

// New reports all faults of a configuration in one error.
func ExampleNew() {
	_, err := kafka.New(kafka.Config{Brokers: []string{"localhost"}, Topics: []string{"payments"}, DeadLetters: "payments"})
	fmt.Println(err)
	// Output:
	// kafka: broker "localhost" is not host:port; write it like kafka.example:9092
	// kafka: dead letters would go to "payments", which is read: each would be delivered again; use another topic
	// kafka: Group is empty; give the consumer a group of its own
}

// A pattern matches whole names only.
func ExampleCompilePattern() {
	reads, err := kafka.CompilePattern(`orders\.(eu|us)`)
	if err != nil {
		panic(err)
	}
	for _, topic := range []string{"orders.eu", "orders.eu.dead"} {
		fmt.Println(topic, reads.MatchString(topic))
	}
	_, err = kafka.CompilePattern(`orders)|(payments`)
	fmt.Println(err)
	// Output:
	// orders.eu true
	// orders.eu.dead false
	// error parsing regexp: unexpected ): `orders)|(payments`
}

// startPaymentBroker starts a broker in this process and writes the given values with their ids.
func startPaymentBroker(valuesAndIDs ...string) (brokers []string, end func()) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.SeedTopics(1, "payments", "payments.dead", "receipts"))
	if err != nil {
		panic(err)
	}
	p, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("payments"))
	if err != nil {
		panic(err)
	}
	defer p.Close()
	for i := 0; i < len(valuesAndIDs); i += 2 {
		err = errors.Join(err, p.ProduceSync(context.Background(), paymentRecord(valuesAndIDs[i], valuesAndIDs[i+1])).FirstErr())
	}
	if err != nil {
		panic(err)
	}
	return c.ListenAddrs(), c.Close
}

// paymentRecord returns a record that contains a payment as a CloudEvent.
func paymentRecord(value, id string) *kgo.Record {
	return &kgo.Record{Value: []byte(value), Headers: []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("paid")},
		{Key: "ce_id", Value: []byte(id)}, {Key: "ce_source", Value: []byte("/shop")},
	}}
}

// publish writes a payment to a topic, and creates the topic if it is missing.
func publish(brokers []string, topic, id string) {
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation())
	if err != nil {
		panic(err)
	}
	defer p.Close()
	if err := p.ProduceSync(context.Background(), paymentRecord("{}", id)).FirstErr(); err != nil {
		panic(err)
	}
}
