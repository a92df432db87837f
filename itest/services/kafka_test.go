package services

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/must"
)

// publish sends one record and returns the broker's error.
func publish(t *testing.T, brokers []string, topic string, most time.Duration) error {
	t.Helper()
	c := connectKafka(t, brokers...)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("value")}).FirstErr()
}

func countRecords(t *testing.T, brokers []string, topic string) int64 {
	t.Helper()
	admin := kadm.NewClient(connectKafka(t, brokers...))
	defer admin.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var ends kadm.ListedOffsets
	var err error
	// A leader that was just elected does not know its high watermark yet.
	late := waitUntil(ctx, func() bool {
		if ends, err = admin.ListEndOffsets(ctx, topic); err == nil {
			err = ends.Error()
		}
		return !errors.Is(err, kerr.OffsetNotAvailable)
	})
	must.OK(t, errors.Join(err, late))
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

func TestATopicGoesWithItsTest(t *testing.T) {
	brokers := Kafka(t)
	var name string
	t.Run("a test with a topic", func(t *testing.T) {
		name = Topic(t, brokers, 3, "cleanup.policy=compact")
		if again := Topic(t, brokers, 1); again == name {
			t.Error("two topics have one name")
		}
	})
	admin := kadm.NewClient(connectKafka(t, brokers...))
	defer admin.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := waitUntil(ctx, func() bool {
		found, err := admin.ListTopics(ctx, name)
		return err == nil && errors.Is(found[name].Err, kerr.UnknownTopicOrPartition)
	})
	if err != nil {
		t.Errorf("the topic is still there: %v", err)
	}
}

func TestABrokerThatWasKilledComesBackWithWhatItConfirmed(t *testing.T) {
	c := StartKafka(t, KafkaOptions{Settings: []string{"message.max.bytes=2000000"}})
	topic := Topic(t, c.Brokers(), 1)
	must.OK(t, publish(t, c.Brokers(), topic, patience))
	c.Node(0).Kill()
	if _, err := clusterMembers(t.Context(), c.Brokers()[0]); err == nil {
		t.Fatal("a killed broker answers")
	}
	c.Node(0).Start()
	c.Node(0).Freeze()
	if err := publish(t, c.Brokers(), topic, 200*time.Millisecond); err == nil {
		t.Error("a frozen broker acked a record")
	}
	c.Node(0).Thaw()
	if err := publish(t, c.Brokers(), topic, patience); err != nil {
		t.Errorf("the thawed broker returned %v", err)
	}
	c.Node(0).Stop()
	c.Node(0).Start()
	if n := countRecords(t, c.Brokers(), topic); n < 2 {
		t.Errorf("after two restarts there are %d records, want the 2 that were confirmed", n)
	}
}

func TestThreeBrokersGoOnWithoutOne(t *testing.T) {
	c := StartKafka(t, KafkaOptions{Nodes: 3})
	topic := Topic(t, c.Brokers(), 3)
	c.Node(1).Kill()
	c.Node(2).Freeze()
	c.Node(2).Thaw()
	if err := publish(t, c.Brokers(), topic, patience); err != nil {
		t.Errorf("two of three brokers returned %v", err)
	}
	c.Node(1).Start()
	c.WaitComplete()
	for n := range 3 {
		c.Node(n).Kill()
	}
	c.StartAll()
	if n := countRecords(t, c.Brokers(), topic); n != 1 {
		t.Errorf("after all were killed there are %d records, want 1", n)
	}
}
