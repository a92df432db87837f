package kafka

import (
	"crypto/tls"
	"log/slog"
	"time"

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

// Config says what to read, as whom, and from where. The zero value of a field
// is its default; New reports every fault at once.
type Config struct {
	// Brokers are the first brokers to ask, host:port. Required.
	Brokers []string
	// Topics are read. Required. All must exist: while one is missing, Fetch
	// fails with its name and none is read.
	Topics []string
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
	// Start says where a partition begins for which the group has no offset;
	// the default is its beginning.
	Start Start
	// ReadUncommitted delivers records of open and aborted transactions, too.
	ReadUncommitted bool
	// Format is Records unless set.
	Format Format
	// MaxRecord is the longest value in bytes that is read as a message;
	// default 16 MiB. A longer one is refused as too large.
	MaxRecord int
	// DeadLetters is the topic for dead letters; empty for none. Records keep
	// key, value and headers, and get the headers of HeaderReason and its
	// siblings. It may not be one of Topics.
	DeadLetters string
	// TLS, when set, is used for every connection.
	TLS *tls.Config
	// SASL, when set, authenticates: github.com/twmb/franz-go/pkg/sasl has
	// plain, scram and oauth.
	SASL []sasl.Mechanism
	// ClientID is what brokers log and limit by; default "semel".
	ClientID string
	// Logger gets the client's warnings; default slog.Default().
	Logger *slog.Logger
	// Observe, when set, is called about once a second with every lane's
	// state, and at once when one changes hands. It must not block.
	Observe func([]LaneState)
}

// Start is where a partition begins for which the group has no offset. The
// zero value is the beginning of the partition.
type Start struct {
	// Now begins behind the last record that is there when the group first
	// joins. What is produced to a partition that is added later is read from
	// its beginning.
	Now bool
	// At begins at the first record with this broker time or a later one.
	At time.Time
	// Group begins at another group's committed offsets; a partition for
	// which it has none begins at its beginning.
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
	// Lost says that the lane has just been lost or given back; it is the
	// last state of it.
	Lost bool
}

// Headers that a dead letter gets beside its own.
const (
	HeaderReason    = "semel-reason"
	HeaderError     = "semel-error"
	HeaderAttempts  = "semel-attempts"
	HeaderConsumer  = "semel-consumer"
	HeaderTopic     = "semel-topic"
	HeaderPartition = "semel-partition"
	HeaderOffset    = "semel-offset"
	HeaderTime      = "semel-time"
)
