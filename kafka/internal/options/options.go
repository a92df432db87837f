// Package options says which options of franz-go a user of package kafka may not set.
package options

import (
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kept is an option that package kafka sets itself: it keeps a promise, or has a field in
// kafka.Config. why says which.
type kept struct {
	option any
	name   string
	why    string
}

const (
	whyCommits = "offsets are committed by this package only, after the store has committed"
	whyMember  = "partitions are given and taken by this package only, or messages could be settled by who does not own them"
	whyReads   = "what is read, and from where, follows from Topics or TopicPattern, Group, Start and ReadUncommitted"
	whyMemory  = "memory is bounded by MaxUnacked; set MaxBatch, MaxFetch or MaxPartitionFetch"
	whyWrites  = "dead letters are idempotent and acknowledged by all replicas"
)

// keptOptions lists what Check refuses.
func keptOptions() []kept {
	return []kept{
		{kgo.DisableAutoCommit, "DisableAutoCommit", whyCommits}, {kgo.GreedyAutoCommit, "GreedyAutoCommit", whyCommits},
		{kgo.AutoCommitMarks, "AutoCommitMarks", whyCommits}, {kgo.AutoCommitInterval, "AutoCommitInterval", whyCommits},
		{kgo.AutoCommitCallback, "AutoCommitCallback", whyCommits},
		{kgo.ConsumerGroup, "ConsumerGroup", whyMember}, {kgo.ShareGroup, "ShareGroup", whyMember}, {kgo.Balancers, "Balancers", whyMember},
		{kgo.ServerSideBalancer, "ServerSideBalancer", whyMember}, {kgo.InstanceID, "InstanceID", whyMember},
		{kgo.SessionTimeout, "SessionTimeout", whyMember}, {kgo.RebalanceTimeout, "RebalanceTimeout", whyMember}, {kgo.HeartbeatInterval, "HeartbeatInterval", whyMember},
		{kgo.OnPartitionsAssigned, "OnPartitionsAssigned", whyMember}, {kgo.OnPartitionsRevoked, "OnPartitionsRevoked", whyMember},
		{kgo.OnPartitionsLost, "OnPartitionsLost", whyMember}, {kgo.BlockRebalanceOnPoll, "BlockRebalanceOnPoll", whyMember},
		{kgo.OnOffsetsFetched, "OnOffsetsFetched", whyMember}, {kgo.AdjustFetchOffsetsFn, "AdjustFetchOffsetsFn", whyMember},
		{kgo.ConsumeTopics, "ConsumeTopics", whyReads}, {kgo.ConsumePartitions, "ConsumePartitions", whyReads}, {kgo.ConsumeRegex, "ConsumeRegex", whyReads},
		{kgo.ConsumeResetOffset, "ConsumeResetOffset", whyReads}, {kgo.ConsumeStartOffset, "ConsumeStartOffset", whyReads},
		{kgo.FetchIsolationLevel, "FetchIsolationLevel", whyReads}, {kgo.KeepControlRecords, "KeepControlRecords", whyReads},
		{kgo.DisableFetchCRCValidation, "DisableFetchCRCValidation", "records that were damaged on the way must be noticed"},
		{kgo.KeepRetryableFetchErrors, "KeepRetryableFetchErrors", "what passes by itself is tried again"},
		{kgo.AllowAutoTopicCreation, "AllowAutoTopicCreation", "a misspelt topic must be told and not made"},
		{kgo.FetchMaxBytes, "FetchMaxBytes", whyMemory}, {kgo.FetchMaxPartitionBytes, "FetchMaxPartitionBytes", whyMemory},
		{kgo.WithDecompressor, "WithDecompressor", whyMemory}, {kgo.MaxDecompressBatchBytes, "MaxDecompressBatchBytes", whyMemory}, {kgo.WithPools, "WithPools", whyMemory},
		{kgo.RequiredAcks, "RequiredAcks", whyWrites}, {kgo.DisableIdempotentWrite, "DisableIdempotentWrite", whyWrites}, {kgo.TransactionalID, "TransactionalID", whyWrites},
		{kgo.ProducerBatchMaxBytes, "ProducerBatchMaxBytes", whyWrites}, {kgo.MaxBufferedRecords, "MaxBufferedRecords", whyWrites},
		{kgo.MaxBufferedBytes, "MaxBufferedBytes", whyWrites}, {kgo.ManualFlushing, "ManualFlushing", whyWrites}, {kgo.DefaultProduceTopicAlways, "DefaultProduceTopicAlways", whyWrites},
		{kgo.SeedBrokers, "SeedBrokers", "set Brokers"}, {kgo.ClientID, "ClientID", "set ClientID"}, {kgo.Rack, "Rack", "set Rack"},
		{kgo.SASL, "SASL", "set SASL"}, {kgo.DialTLSConfig, "DialTLSConfig", "set TLS"}, {kgo.WithLogger, "WithLogger", "set Logger"},
	}
}

// Check returns an error that names the first option that package kafka keeps for itself.
// To see what the options set, it makes a client of them that connects to no broker.
func Check(options []kgo.Opt) error {
	if len(options) == 0 {
		return nil
	}
	nowhere := kgo.SeedBrokers("127.0.0.1:1")
	plain, err := kgo.NewClient(nowhere)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer plain.Close()
	with, err := kgo.NewClient(append([]kgo.Opt{nowhere}, options...)...)
	if err != nil {
		return fmt.Errorf("kafka: Options cannot be used: %w", err)
	}
	defer with.Close()
	for _, k := range keptOptions() {
		if !same(plain.OptValues(k.option), with.OptValues(k.option)) {
			return fmt.Errorf("kafka: Options holds %s, which is not yours to set: %s; remove it", k.name, k.why)
		}
	}
	return nil
}

// same reports whether an option was left alone. Each client has a decompressor
// of its own; one of another type was brought.
func same(a, b []any) bool {
	if len(a) == 1 && len(b) == 1 {
		if _, is := a[0].(kgo.Decompressor); is {
			return reflect.TypeOf(a[0]) == reflect.TypeOf(b[0])
		}
	}
	return reflect.DeepEqual(a, b)
}
