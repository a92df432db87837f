package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Format defines how a record is converted to a message.
type Format uint8

// Formats of records.
const (
	// Records copies key, headers and value of the record unchanged to key, headers and body of the message.
	// CloudEvents in binary mode are recognised by their ce_ headers, which become ce- headers. The default.
	Records Format = iota
	// CloudEvents is like Records, and also decodes events in structured mode: if a record has the content-type
	// application/cloudevents+json, the event's attributes become ce- headers, and the event's data becomes the body.
	CloudEvents
)

// LostRecords is the reaction to records that were deleted before they were read.
type LostRecords uint8

// Reactions to lost records.
const (
	// Halt stops the partition. The log repeats the fault once a minute until an operator sets the group's
	// offset. Other partitions continue. The default.
	Halt LostRecords = iota
	// GoOn logs the lost offsets and continues the partition at the first record that still exists.
	GoOn
)

// Config describes what the source reads and how. The zero value of a field is its default. New reports all
// faults of a Config at once.
type Config struct {
	// Brokers are the brokers to contact first, as host:port. Required.
	Brokers []string
	// Topics are the topics to read. All topics must exist: if a topic is missing, Fetch returns an error with the
	// topic's name, and no topic is read. Either Topics or TopicPattern is required.
	Topics []string
	// TopicPattern is a regular expression in the syntax of package regexp (RE2). The source reads every topic whose
	// whole name matches. A topic that is created later is found within 10 seconds and read from its beginning, even if
	// no process was running when it was created. The brokers' internal topics, whose names begin with two underscores,
	// and DeadLetters are never read. If no topic matches, the source writes a log line and waits.
	TopicPattern string
	// Group is the consumer group. Required. Each consumer needs its own group: two consumers in one group would each
	// get only some of the messages.
	Group string
	// Instance, if set, makes the member static (group.instance.id): a process that restarts within
	// SessionTimeout causes no rebalance. Instance must be unique in the group.
	Instance string
	// NextGen uses the broker-side rebalance protocol of KIP-848 (brokers 4.0 and later) instead of the client-side
	// cooperative protocol. With older brokers the source falls back to the cooperative protocol.
	NextGen bool
	// SessionTimeout is the time after which a silent member loses its lanes; default 45 s. With NextGen the brokers'
	// setting applies.
	SessionTimeout time.Duration
	// RevokeTimeout is the time within which the handlers of a revoked lane must finish their messages; default 20 s.
	// RevokeTimeout must be shorter than the group's rebalance timeout of 60 s.
	RevokeTimeout time.Duration
	// Start is the position at which the source begins to read a topic when the group first joins that topic;
	// default: the beginning of the topic. Start needs a store that keeps positions.
	Start Start
	// CommitInterval is the interval at which offsets are committed to the group; default 1 s. The offsets of a lane
	// that is revoked or closed are committed at once. After a crash, messages since the last commit are delivered
	// again, as duplicates.
	CommitInterval time.Duration
	// OnLostRecords is the reaction to lost records; default Halt.
	OnLostRecords LostRecords
	// ReadUncommitted also delivers records of open and aborted transactions.
	ReadUncommitted bool
	// Format determines how a record becomes a message; default Records.
	Format Format
	// MaxRecord is the longest value, in bytes, that is read as a message; default 16 MiB. A record with a
	// longer value is rejected as too large.
	MaxRecord int
	// MaxBatch is the largest size of a batch of records, in bytes after decompression; default 32 MiB, or
	// more if a record of MaxRecord needs more. A larger batch stops its partition, and the log says how to
	// continue. Reading a batch takes about four times the size of the batch in memory, because the batch is
	// decompressed. MaxBatch limits the memory that the source needs in addition to the consumer's MaxUnacked.
	MaxBatch int
	// MaxFetch is the largest compressed size, in bytes, that one broker sends in a response; MaxPartitionFetch is the
	// limit for one partition. The defaults follow from the consumer's MaxUnacked.Bytes: all brokers together may send
	// a quarter of MaxUnacked.Bytes, each broker between 1 and 16 MiB, and a partition 1 MiB.
	MaxFetch, MaxPartitionFetch int
	// DeadLetters is the topic for dead letters; empty for none. A dead letter has the key, value and headers of its
	// record, and in addition HeaderReason and related headers. DeadLetters must not be one of Topics. The source does
	// not read the topic DeadLetters, even if TopicPattern matches its name.
	DeadLetters string
	// TLS, if set, is used for every connection.
	TLS *tls.Config
	// SASL, if set, authenticates; package github.com/twmb/franz-go/pkg/sasl has the mechanisms plain, scram and oauth.
	SASL []sasl.Mechanism
	// ClientID is the name that brokers use in logs and quotas; default "semel".
	ClientID string
	// Rack is the location of this process, as in the brokers' setting broker.rack. If the brokers allow it,
	// the source reads a partition from a replica in the same rack.
	Rack string
	// Options are further options of franz-go for every client. New rejects options that would break a guarantee, and
	// options for which this Config has a field; the error names the rejected options. To check the options, New
	// creates a client that does not connect.
	Options []kgo.Opt
	// Logger receives the client's warnings; default slog.Default().
	Logger *slog.Logger
	// Observe, if set, is called with the state of every lane about once a second, and at once when a lane is
	// assigned or lost. Observe must not block.
	Observe func([]LaneState)
}

// Start is the position at which reading of a topic begins when the group first joins the topic and has no offset.
// Start is used once: the resulting offsets are kept in the consumer's store. Partitions that are added later, and a
// topic that was deleted and created again, are read from their beginning. The zero value means the beginning of the
// topic.
type Start struct {
	// If Now is true, reading begins after the last existing record.
	Now bool
	// If At is not zero, reading begins at the first record with this time or a later time. The producer sets the time
	// of a record; if the topic has message.timestamp.type=LogAppendTime, the broker sets the time.
	At time.Time
	// If Group is not empty, reading begins at the committed offsets of that other group. A partition for which the
	// other group has no offset is read from its beginning. If the other group does not exist, the partitions wait, and
	// Fetch returns an error.
	Group string
}

// LaneState is the state of a lane that is assigned to this process.
type LaneState struct {
	Topic     string
	Partition int32
	// Committed is the group's offset, Delivered the offset after the last delivered record, and End the last
	// known end of the partition. A value that is not known yet is -1.
	Committed, Delivered, End int64
	// Unsettled is the number of deliveries that are not acked, nacked or dead-lettered yet. Oldest is the delivery
	// time of the oldest such delivery; zero if there is no such delivery.
	Unsettled int
	Oldest    time.Time
	// Paused is true while the consumer has paused the lane.
	Paused bool
	// HeldUp is true if the lane has records that cannot be delivered because of an open transaction.
	HeldUp bool
	// Fault is the reason why the lane has stopped while other lanes continue; nil if the lane has not
	// stopped.
	Fault error
	// Lost is true in the last report of a lane: the lane was just lost or given back.
	Lost bool
}

// HeaderWas is the prefix for headers of a dead letter whose record was itself a dead letter. The header
// "semel-was-topic" has the value that HeaderTopic had in the earlier dead letter, and so on, for up to four
// earlier dead letters.
const HeaderWas = deadletter.HeaderWas

// Headers that are added to a dead letter.
const (
	HeaderReason    = deadletter.HeaderReason
	HeaderError     = deadletter.HeaderError
	HeaderAttempts  = deadletter.HeaderAttempts
	HeaderConsumer  = deadletter.HeaderConsumer
	HeaderTopic     = deadletter.HeaderTopic
	HeaderPartition = deadletter.HeaderPartition
	HeaderOffset    = deadletter.HeaderOffset
	HeaderTime      = deadletter.HeaderTime
)

// String returns the format's name in a policy file.
func (f Format) String() string {
	return enum.Name([]string{"records", "cloudevents"}, f, "Format")
}

// String returns the value's name in a policy file.
func (l LostRecords) String() string {
	return enum.Name([]string{"halt", "go_on"}, l, "LostRecords")
}

// Headers that the source adds to a delivery.
const (
	// HeaderTombstone is "true" if the value of the record was null. The body is then empty, as for a value of
	// 0 bytes.
	HeaderTombstone = message.HeaderTombstone
	// HeaderLength is the length of the original value in bytes, as a decimal number. A message has the header
	// HeaderLength if its record is too large. A dead letter has the header HeaderLength if the dead letter was
	// truncated because its topic does not accept large records. A record that arrives with the header HeaderLength is
	// a truncated dead letter, and is rejected as too large.
	HeaderLength = semelheader.Length
)

// isolation returns the isolation level of fetches.
func (c *Config) isolation() kgo.Opt {
	if c.ReadUncommitted {
		return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadCommitted())
}

// endOffsets returns the current end offsets of topics, for the isolation level of this configuration.
func (c *Config) endOffsets(ctx context.Context, ask *kadm.Client, topics ...string) (kadm.ListedOffsets, error) {
	list := ask.ListCommittedOffsets
	if c.ReadUncommitted {
		list = ask.ListEndOffsets
	}
	return allListed(list(ctx, topics...))
}

func (c *Config) decoder() *message.Decoder {
	return message.NewDecoder(c.MaxRecord, c.Format == CloudEvents)
}
