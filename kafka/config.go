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

// Format says what a record becomes.
type Format uint8

// The formats.
const (
	// Records: key, headers and value become key, headers and body as they
	// are. CloudEvents in binary mode are found by their ce_ headers, which
	// become ce- headers. The default.
	Records Format = iota
	// CloudEvents: as Records; a record whose content-type says
	// application/cloudevents+json is an event in structured mode: its
	// attributes become ce- headers, data the body.
	CloudEvents
)

// LostRecords says what follows when records were deleted before they were read.
type LostRecords uint8

// What can follow.
const (
	// Halt: the partition stands still, the log says so once a minute, and a
	// person sets the group's offset. Other partitions go on. The default.
	Halt LostRecords = iota
	// GoOn: the loss is logged with its offsets, and the partition goes on with
	// the first record that is still there.
	GoOn
)

// Config says what to read, as whom, and from where. The zero value of a field
// is its default; New reports every fault at once.
type Config struct {
	// Brokers are the first brokers to ask, host:port. Required.
	Brokers []string
	// Topics are read. All must exist: while one is missing, Fetch fails with
	// its name and none is read. Either they or TopicPattern are required.
	Topics []string
	// TopicPattern is a regular expression in the syntax of package regexp
	// (RE2). Every topic is read of which it matches the whole name, also one
	// that is created later: that is found within 10 seconds and read from its
	// beginning, also if no process ran when it was created. Topics of the
	// brokers' own, whose names begin with two underscores, and DeadLetters are
	// never read. While no topic matches, the log says so and the source waits.
	TopicPattern string
	// Group is the consumer group. Required. Every consumer needs a group of
	// its own: two consumers in one group would each get half.
	Group string
	// Instance, when set, makes the member static (group.instance.id): a
	// restart within SessionTimeout causes no rebalance. Unique in the group.
	Instance string
	// NextGen joins with the broker-side protocol of KIP-848 (brokers from 4.0
	// on) instead of the cooperative one of the client, which older brokers
	// get all the same.
	NextGen bool
	// SessionTimeout is after how long a silent member loses its lanes;
	// default 45 s. With NextGen the brokers' setting counts.
	SessionTimeout time.Duration
	// RevokeTimeout is how long a lane that is taken away may go on to end
	// what it began; default 20 s. It must leave room in the group's
	// rebalance time-out of 60 s.
	RevokeTimeout time.Duration
	// Start says where a topic begins when the group first joins it; the
	// default is its beginning. Set, it needs a store that keeps positions.
	Start Start
	// CommitInterval is how often the group is told how far its lanes are done;
	// default 1 s. A lane that is taken away or closed is committed at once. After
	// a crash the messages since then come again, as duplicates.
	CommitInterval time.Duration
	// OnLostRecords is Halt unless set.
	OnLostRecords LostRecords
	// ReadUncommitted delivers records of open and aborted transactions, too.
	ReadUncommitted bool
	// Format is Records unless set.
	Format Format
	// MaxRecord is the longest value in bytes that is read as a message;
	// default 16 MiB. A longer one is refused as too large.
	MaxRecord int
	// MaxBatch is the most bytes a batch of records may have when it is
	// decompressed; default 32 MiB, or as much as a record of MaxRecord needs.
	// A larger one stops its partition, and the log says how to go on. To read a
	// batch takes about four times its size, as it is decompressed.
	// What the source needs beside the consumer's MaxUnacked is bounded by
	// this.
	MaxBatch int
	// MaxFetch is the most bytes, as they are compressed, that one broker
	// sends at once, MaxPartitionFetch those of one partition. The defaults
	// follow from the consumer's MaxUnacked.Bytes: a quarter of it shared by
	// all brokers, 1 to 16 MiB each; and 1 MiB a partition.
	MaxFetch, MaxPartitionFetch int
	// DeadLetters is the topic for dead letters; empty for none. Records keep
	// key, value and headers, and get the headers of HeaderReason and its
	// siblings. It may not be one of Topics, and is not read where TopicPattern
	// matches it.
	DeadLetters string
	// TLS, when set, is used for every connection.
	TLS *tls.Config
	// SASL, when set, authenticates: github.com/twmb/franz-go/pkg/sasl has
	// plain, scram and oauth.
	SASL []sasl.Mechanism
	// ClientID is what brokers log and limit by; default "semel".
	ClientID string
	// Rack is where this process runs, as the brokers' broker.rack says it: a
	// partition is read from a replica there, if the brokers allow that.
	Rack string
	// Options are further ones of franz-go, for every client. New refuses by
	// name those that would break what is promised, and those that have a field
	// here. For the check it makes a client of them that connects to nobody.
	Options []kgo.Opt
	// Logger gets the client's warnings; default slog.Default().
	Logger *slog.Logger
	// Observe, when set, is called about once a second with every lane's
	// state, and at once when one changes hands. It must not block.
	Observe func([]LaneState)
}

// Start is where a topic begins when the group first joins it and has no
// offset. It counts once: where it led is kept in the consumer's store.
// Partitions that are added later, and a topic that is created anew, are read
// from their beginning. The zero value is the beginning of the topic.
type Start struct {
	// Now begins behind the last record that is there.
	Now bool
	// At begins at the first record with this time or a later one. A record's
	// time is its producer's, or the broker's where the topic says
	// message.timestamp.type=LogAppendTime.
	At time.Time
	// Group begins at another group's committed offsets; a partition for
	// which it has none begins at its beginning. Without any such group the
	// partitions wait, and Fetch says so.
	Group string
}

// LaneState is what a source knows of a lane it owns.
type LaneState struct {
	Topic     string
	Partition int32
	// Committed is the group's offset, Delivered the offset after the last
	// record delivered, End the end of the partition as last heard; -1
	// where not known yet.
	Committed, Delivered, End int64
	// Unsettled are deliveries that are not settled; Oldest is when the
	// oldest of them was delivered, zero if there is none.
	Unsettled int
	Oldest    time.Time
	// Paused says that the engine has paused the lane.
	Paused bool
	// HeldUp says that records are there and none can be delivered because a
	// transaction stays open at their head.
	HeldUp bool
	// Fault is why the lane stands still, while the others go on; nil where it
	// does not.
	Fault error
	// Lost says that the lane has just been lost or given back; it is the
	// last state of it.
	Lost bool
}

// HeaderWas begins the names of headers in a letter of a record that was a dead letter itself:
// what HeaderTopic said of that is under "semel-was-topic", and so on, up to four letters back.
const HeaderWas = deadletter.HeaderWas

// Headers that a dead letter gets beside its own.
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

// String is the format's word in a policy file.
func (f Format) String() string {
	return enum.Name([]string{"records", "cloudevents"}, f, "Format")
}

// String is its word in a policy file.
func (l LostRecords) String() string {
	return enum.Name([]string{"halt", "go_on"}, l, "LostRecords")
}

// Headers that the source itself adds to a delivery.
const (
	// HeaderTombstone has the value "true" where the record's value was null.
	// The body is empty then, as it is for a value of 0 bytes.
	HeaderTombstone = message.HeaderTombstone
	// HeaderLength is the length in bytes, in decimal digits, of the value of
	// a record that is too large, and of a dead letter that was cut because
	// its topic takes no records of its size. A record that has it already is
	// such a letter, and refused as too large.
	HeaderLength = semelheader.Length
)

// isolation is which records of transactions are read.
func (c *Config) isolation() kgo.Opt {
	if c.ReadUncommitted {
		return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadCommitted())
}

// ends are where what is read of these topics ends now.
func (c *Config) ends(ctx context.Context, ask *kadm.Client, topics ...string) (kadm.ListedOffsets, error) {
	list := ask.ListCommittedOffsets
	if c.ReadUncommitted {
		list = ask.ListEndOffsets
	}
	return allListed(list(ctx, topics...))
}

func (c *Config) decoder() *message.Decoder {
	return message.NewDecoder(c.MaxRecord, c.Format == CloudEvents)
}
