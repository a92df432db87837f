package services

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/itest/must"
)

// Kafka returns the host and port of the shared broker. Other tests use the same broker, so create topics
// with [Topic] and use unique group names.
//
// The test fails if SEMEL_KAFKA is not set.
func Kafka(t testing.TB) []string {
	t.Helper()
	return []string{address(t, "SEMEL_KAFKA", "kafka")}
}

// Patient returns options for clients that write to new topics. If a broker does not know a topic yet, a client with
// these options retries for a minute. By default, a client gives up after five responses that the topic is unknown.
func Patient() []kgo.Opt {
	const often = 100 * time.Millisecond
	return []kgo.Opt{kgo.MetadataMinAge(often), kgo.UnknownTopicRetries(int(time.Minute / often))}
}

// Topic creates a topic with a unique name. Topic returns when each broker knows the topic. The topic is deleted when
// the test ends. Every broker has a replica of the topic. A setting is written as "name=value".
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
	var made kadm.CreateTopicResponse
	var err error
	_ = waitUntil(ctx, func() bool {
		made, err = admin.CreateTopic(ctx, int32(partitions), -1, configs, name)
		return !Passes(err)
	})
	if err != nil {
		t.Fatalf("create topic %s on %v: %v; see scripts/services status", name, brokers, err)
	}
	t.Cleanup(func() { deleteTopic(t, brokers, name) })
	AwaitTopic(t, brokers, name, made.ID)
	return name
}

// Passes reports whether a failed creation of a topic will succeed later. Either an earlier topic with the same name is
// still being deleted, or the controller of a busy machine does not know its brokers yet.
func Passes(err error) bool {
	return errors.Is(err, kerr.TopicAlreadyExists) || errors.Is(err, kerr.InvalidReplicationFactor)
}

// AwaitTopic returns when each of the brokers knows the topic with the given id. A deleted topic that is created again
// has another id.
func AwaitTopic(t testing.TB, brokers []string, topic string, id [16]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, broker := range brokers {
		if err := waitUntil(ctx, func() bool { return isTopicKnown(ctx, broker, topic, id) }); err != nil {
			t.Fatalf("%s does not know topic %s, which was created: %v", broker, topic, err)
		}
	}
}

// isTopicKnown reports whether a broker knows a topic and the leaders of its partitions.
func isTopicKnown(ctx context.Context, broker, topic string, id [16]byte) bool {
	request, asked := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	request.Topics = append(request.Topics, asked)
	response, err := metadata(ctx, broker, request)
	if err != nil || len(response.Topics) != 1 || response.Topics[0].ErrorCode != 0 || response.Topics[0].TopicID != id {
		return false
	}
	return !slices.ContainsFunc(response.Topics[0].Partitions, func(p kmsg.MetadataResponseTopicPartition) bool {
		return p.ErrorCode != 0 || p.Leader < 0
	})
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
	c := must.Get(kgo.NewClient(kgo.SeedBrokers(brokers...)))(t)
	return c
}

// clusterMembers asks one broker for the list of the cluster's members.
func clusterMembers(ctx context.Context, broker string) ([]kmsg.MetadataResponseBroker, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{}
	response, err := metadata(ctx, broker, request)
	if err != nil {
		return nil, err
	}
	return response.Brokers, nil
}

// metadata sends the request to exactly one broker, the parameter broker. The client's own method would answer from its
// cache or ask another broker.
func metadata(ctx context.Context, broker string, request *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return request.RequestWith(ctx, c.SeedBrokers()[0])
}
