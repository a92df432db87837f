package services

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/itest/must"
)

func TestAPatientClientWaitsForATopicThatABrokerDoesNotKnowYet(t *testing.T) {
	cluster := must.Get(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "late")))(t)
	defer cluster.Close()
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "late", Err: kerr.UnknownTopicOrPartition, Count: 8})
	client := must.Get(kgo.NewClient(append(Patient(), kgo.SeedBrokers(cluster.ListenAddrs()...))...))(t)
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "late", Value: []byte("value")}).FirstErr(); err != nil {
		t.Error(err)
	}
}
