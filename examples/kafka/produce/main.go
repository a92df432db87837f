// Command produce creates the topics of the example and sends payments to the first topic. Like a producer that
// retries, produce sends one payment in ten twice. The payments are the same in each run.
//
//	KAFKA_BROKERS=127.0.0.1:9092 go run ./examples/kafka/produce [-payments 1000]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const partitions = 6

func main() {
	payments := flag.Int("payments", 1000, "how many payments")
	topic := flag.String("topic", "payments", "the topic; its dead letters go to TOPIC-dead")
	flag.Parse()
	brokers := strings.Split(envOr("KAFKA_BROKERS", "127.0.0.1:9092"), ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, brokers, *topic, *payments); err != nil {
		log.Fatal(err)
	}
}

func envOr(name, value string) string {
	if set := os.Getenv(name); set != "" {
		return set
	}
	return value
}

func run(ctx context.Context, brokers []string, topic string, payments int) error {
	// By default, the client is an idempotent producer. If the client repeats a record, the topic has the
	// record once. If the program repeats a record, the topic has the record twice.
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, name := range []string{topic, topic + "-dead"} {
		if err := create(ctx, client, name); err != nil {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	var records []*kgo.Record
	for n := range payments {
		records = append(records, payment(n))
		if n%10 == 0 {
			records = append(records, payment(n))
		}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	fmt.Printf("sent %d records of %d payments to %s\n", len(records), payments, topic)
	return nil
}

// payment returns a CloudEvent in binary mode. The database rejects the amount of one payment in 200.
func payment(n int) *kgo.Record {
	account, amount := fmt.Sprintf("account-%d", n%10), n%90+10
	if n%200 == 199 {
		amount = -amount
	}
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	return &kgo.Record{
		Key:   []byte(account),                                                                 // payments of one account keep their order
		Value: fmt.Appendf(nil, `{"account":%q,"amount":%d,"invoice":%d}`, account, amount, n), // all payments are different
		Headers: []kgo.RecordHeader{header("ce_specversion", "1.0"), header("ce_id", fmt.Sprintf("payment-%06d", n)),
			header("ce_source", "shop"), header("ce_type", "payment"), header("content-type", "application/json")},
	}
}

func create(ctx context.Context, client *kgo.Client, topic string) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, -1
	request.Topics = append(request.Topics, t)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
	}
	return nil
}
