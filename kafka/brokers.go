package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The brokers count as unreachable after no broker has answered for the time silence. silence is longer than the
// interval of heartbeats, because heartbeats are the only requests while all lanes are paused.
const silence = heartbeat + 2*time.Second

// brokers is the client for requests and commits. The client of the type brokers is not a member of the group, and
// holds no state of lanes or topics.
type brokers struct {
	config     *Config
	dial       dialer // tests set another network here
	lastDial   hook.LastDial
	warnings   hook.Warnings
	unanswered hook.UnansweredCommits
	lastAnswer hook.LastAnswer

	mu     sync.Mutex  // guards the fields below; no other lock is taken while it is held
	asking *kgo.Client // nil before the first join
	closed bool
}

// openClient creates the client if no client exists, and then calls the function begun. openClient returns false if the
// source is closed.
func (b *brokers) openClient(begun func()) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.asking != nil {
		return !b.closed, nil
	}
	client, err := kgo.NewClient(b.clientOptions()...)
	if err != nil {
		return false, fmt.Errorf("kafka: %w", err)
	}
	b.asking = client
	begun()
	return true, nil
}

func (b *brokers) client() *kgo.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asking
}

// markClosed prevents the creation of clients. markClosed reports whether a client exists.
func (b *brokers) markClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.asking != nil
}

func (b *brokers) close() {
	if client := b.client(); client != nil {
		client.Close()
	}
}

// dialer connects to a broker.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// commonOptions returns the client options that all connections share.
func (b *brokers) commonOptions() []kgo.Opt {
	c := b.config
	options := append(slices.Clone(c.Options),
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.ClientID), kgo.WithLogger(hook.Logger{To: c.Logger, Warnings: &b.warnings}),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(metadataWait), kgo.SASL(c.SASL...), kgo.DisableClientMetrics())
	if b.dial != nil {
		options = append(options, kgo.Dialer(b.dial))
	}
	if c.TLS != nil {
		options = append(options, kgo.DialTLSConfig(c.TLS.Clone()))
	}
	return options
}

// clientOptions returns the options of the client for requests and commits.
func (b *brokers) clientOptions() []kgo.Opt {
	return append(b.commonOptions(), kgo.WithHooks(&b.lastDial, &b.unanswered, &b.lastAnswer), kgo.MaxDecompressBatchBytes(b.config.MaxBatch))
}

// unreachableError returns the error to report if the brokers do not answer.
func (b *brokers) unreachableError(err error) error {
	var answer *kerr.Error
	if errors.As(errors.Join(err, b.lastDial.Err()), &answer) {
		return explain(answer, "", b.config.Group)
	}
	return fmt.Errorf("kafka: none of the brokers %v can be reached; check that they run, that the addresses are right, and that TLS and SASL match their listener: %w", b.config.Brokers, connectionError{b.lastDial.Err(), err})
}

// connectionError is the reason why no broker answered a request: the error of the connection (the field dialed), and
// the error of the request (the field asked). The text of a connectionError is the more specific of the two errors;
// errors.Is finds both errors.
type connectionError struct{ dialed, asked error }

func (e connectionError) Error() string {
	var cause *net.OpError
	if errors.As(errors.Join(e.dialed, e.asked), &cause) {
		return cause.Error()
	}
	return cmp.Or(e.dialed, e.asked).Error()
}

func (e connectionError) Unwrap() []error { return []error{e.dialed, e.asked} }

// Special timestamps in a ListOffsets request, for the end and the beginning of a partition.
const (
	atEnd   = -1
	atBegin = -2
)

// entryOf returns the entry of a topic in a request, and adds the entry if it is missing. The parameter index maps
// topics to their entries.
func entryOf[T any](index map[string]int, topic string, all *[]T, fresh func() T) *T {
	at, known := index[topic]
	if !known {
		at = len(*all)
		index[topic] = at
		*all = append(*all, fresh())
	}
	return &(*all)[at]
}

// listOffsets requests the offsets at a timestamp. Partitions with an error are missing in the result.
func (b *brokers) listOffsets(ctx context.Context, partitions []topicPartition, at int64, committed bool) (map[topicPartition]int64, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if committed {
		request.IsolationLevel = 1
	}
	topics := map[string]int{}
	for _, p := range partitions {
		topic := entryOf(topics, p.topic, &request.Topics, kmsg.NewListOffsetsRequestTopic)
		topic.Topic = p.topic
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p.partition, at
		topic.Partitions = append(topic.Partitions, partition)
	}
	response, err := request.RequestWith(ctx, b.client())
	if err != nil {
		return nil, err
	}
	found := map[topicPartition]int64{}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if kerr.ErrorForCode(p.ErrorCode) == nil {
				found[topicPartition{topic.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return found, nil
}

// hasMore reports whether a fetch finds any batch after a lane's position. The end of a log can be after its
// last batch, because compaction removes tombstones and control records of transactions.
func (b *brokers) hasMore(ctx context.Context, r lanePosition) (bool, error) {
	batches, err := b.firstBatches(ctx, r, b.config.ReadUncommitted)
	return len(batches) > 0, err
}

// firstBatches returns the first batches that a fetch finds at a position; nil if the fetch finds none.
func (b *brokers) firstBatches(ctx context.Context, r lanePosition, uncommitted bool) ([]byte, error) {
	leader, err := b.leader(ctx, r.topicPartition)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch, request.MaxBytes = -1, -1, 1
	if !uncommitted {
		request.IsolationLevel = 1
	}
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = r.topic, r.topicID
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = r.partition, r.offset, 1
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(ctx, leader)
	if err == nil {
		err = kerr.ErrorForCode(response.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			if len(p.RecordBatches) > 0 {
				return p.RecordBatches, nil
			}
		}
	}
	return nil, nil
}

// noLeaderError is the reason why a partition has no leader that could answer a request.
type noLeaderError struct{ err error }

func (e noLeaderError) Error() string { return "no broker is its leader: " + e.err.Error() }

func (e noLeaderError) Unwrap() error { return e.err }

func (b *brokers) leader(ctx context.Context, p topicPartition) (*kgo.Broker, error) {
	known, err := kadm.NewClient(b.client()).Metadata(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	topic := known.Topics[p.topic]
	partition, there := topic.Partitions[p.partition]
	switch {
	case topic.Err != nil:
		return nil, noLeaderError{topic.Err}
	case !there:
		return nil, noLeaderError{kerr.UnknownTopicOrPartition}
	case partition.Leader < 0:
		return nil, noLeaderError{kerr.LeaderNotAvailable}
	}
	return b.client().Broker(int(partition.Leader)), nil
}

// allListed returns the given offsets, or an error if the offsets of a partition could not be listed.
func allListed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}

// metadataOf returns a metadata request for topics by name. The package does not use kadm for metadata requests,
// because kadm answers from a cache.
func metadataOf(topics ...string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, asked)
	}
	return request
}

// untilKnown calls the function ask again, for a short time, while the error says that a topic is unknown, because
// brokers may give this answer for a topic that was just created.
func untilKnown(ctx context.Context, err error, ask func(context.Context) error) error {
	for deadline := time.Now().Add(newTopic); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(deadline) && ctx.Err() == nil; {
		timing.Wait(ctx, newTopic/10)
		err = ask(ctx)
	}
	return err
}

// reader creates a client that reads partitions from offsets, without a group.
func (b *brokers) reader(from map[string]map[int32]kgo.Offset, more ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(append(b.commonOptions(), kgo.ConsumePartitions(from), b.config.isolation(), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(fetchWait), kgo.MaxDecompressBatchBytes(b.config.MaxBatch)), more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}
