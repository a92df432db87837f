package services

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka returns host and port of the shared broker. Other tests use it, too:
// make topics with [Topic], and give groups names of their own.
//
// The test fails if SEMEL_KAFKA is not set.
func Kafka(t testing.TB) []string {
	t.Helper()
	return []string{address(t, "SEMEL_KAFKA", "kafka")}
}

// Kafka3 returns host and port of each broker of the shared cluster of three.
// A test that kills one needs [StartKafka].
//
// The test fails if SEMEL_KAFKA3 is not set.
func Kafka3(t testing.TB) []string {
	t.Helper()
	return strings.Split(address(t, "SEMEL_KAFKA3", "kafka3"), ",")
}

// Topic makes a topic with a name of its own, which is deleted at the test's
// end. Every broker has a copy of it. Settings are "name=value" each.
func Topic(t testing.TB, brokers []string, partitions int, settings ...string) string {
	t.Helper()
	name := "semel-" + strings.ToLower(rand.Text())
	admin := kadm.NewClient(connectKafka(t, brokers...))
	defer admin.Close()
	configs := map[string]*string{}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		configs[key] = &value
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, configs, name); err != nil {
		t.Fatalf("make topic %s on %v: %v; see scripts/services status", name, brokers, err)
	}
	t.Cleanup(func() { deleteTopic(t, brokers, name) })
	return name
}

func deleteTopic(t testing.TB, brokers []string, name string) {
	admin := kadm.NewClient(connectKafka(t, brokers...))
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := admin.DeleteTopic(ctx, name); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("delete topic %s: %v", name, err)
	}
}

func connectKafka(t testing.TB, brokers ...string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// members asks one broker which brokers take part. Asking the client would not
// do: it answers from what it knows.
func members(ctx context.Context, broker string) ([]kmsg.MetadataResponseBroker, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{}
	response, err := request.RequestWith(ctx, c.SeedBrokers()[0])
	if err != nil {
		return nil, err
	}
	return response.Brokers, nil
}
