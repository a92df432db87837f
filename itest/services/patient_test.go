package services

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAPatientClientWaitsForATopicThatABrokerDoesNotKnowYet(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "late"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "late", Err: kerr.UnknownTopicOrPartition, Count: 8})
	client, err := kgo.NewClient(append(Patient(), kgo.SeedBrokers(cluster.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "late", Value: []byte("value")}).FirstErr(); err != nil {
		t.Error(err)
	}
}
