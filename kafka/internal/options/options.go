// Package options lists the options of franz-go that users of package kafka must not set.
package options

import (
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kgo"
)

// keptOption is an option that users must not set: package kafka sets it for a guarantee, or kafka.Config has a field
// for the option. The field why is the reason.
type keptOption struct {
	option any
	name   string
	why    string
}

const (
	whyCommits = "only this package commits offsets, after the store has committed"
	whyMember  = "only this package handles assignments; otherwise a process could settle messages of partitions that it does not own"
	whyReads   = "set Topics or TopicPattern, Group, Start and ReadUncommitted instead"
	whyMemory  = "MaxUnacked limits memory; set MaxBatch, MaxFetch or MaxPartitionFetch"
	whyWrites  = "dead letters are idempotent and acknowledged by all replicas"
)

// keptOptions returns the options that Check rejects.
func keptOptions() []keptOption {
	return []keptOption{
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
		{kgo.DisableFetchCRCValidation, "DisableFetchCRCValidation", "records that were damaged during transfer must be detected"},
		{kgo.KeepRetryableFetchErrors, "KeepRetryableFetchErrors", "temporary errors are retried"},
		{kgo.AllowAutoTopicCreation, "AllowAutoTopicCreation", "a misspelt topic must be reported and not created"},
		{kgo.FetchMaxBytes, "FetchMaxBytes", whyMemory}, {kgo.FetchMaxPartitionBytes, "FetchMaxPartitionBytes", whyMemory},
		{kgo.WithDecompressor, "WithDecompressor", whyMemory}, {kgo.MaxDecompressBatchBytes, "MaxDecompressBatchBytes", whyMemory}, {kgo.WithPools, "WithPools", whyMemory},
		{kgo.RequiredAcks, "RequiredAcks", whyWrites}, {kgo.DisableIdempotentWrite, "DisableIdempotentWrite", whyWrites}, {kgo.TransactionalID, "TransactionalID", whyWrites},
		{kgo.ProducerBatchMaxBytes, "ProducerBatchMaxBytes", whyWrites}, {kgo.MaxBufferedRecords, "MaxBufferedRecords", whyWrites},
		{kgo.MaxBufferedBytes, "MaxBufferedBytes", whyWrites}, {kgo.ManualFlushing, "ManualFlushing", whyWrites}, {kgo.DefaultProduceTopicAlways, "DefaultProduceTopicAlways", whyWrites},
		{kgo.SeedBrokers, "SeedBrokers", "set Brokers"}, {kgo.ClientID, "ClientID", "set ClientID"}, {kgo.Rack, "Rack", "set Rack"},
		{kgo.SASL, "SASL", "set SASL"}, {kgo.DialTLSConfig, "DialTLSConfig", "set TLS"}, {kgo.WithLogger, "WithLogger", "set Logger"},
	}
}

// Check returns an error if users set an option that package kafka sets itself. The error names the first forbidden
// option. To find out what the options change, Check creates a client that does not connect.
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
		if !isSame(plain.OptValues(k.option), with.OptValues(k.option)) {
			return fmt.Errorf("kafka: Options contains %s, which must not be set (%s); remove it", k.name, k.why)
		}
	}
	return nil
}

// isSame reports whether the value of an option is unchanged. Each client has a new decompressor, so isSame compares
// only the types of decompressors.
func isSame(a, b []any) bool {
	if len(a) == 1 && len(b) == 1 {
		if _, is := a[0].(kgo.Decompressor); is {
			return reflect.TypeOf(a[0]) == reflect.TypeOf(b[0])
		}
	}
	return reflect.DeepEqual(a, b)
}
