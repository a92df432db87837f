package policy

import (
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
)

// Kafka is a source of topics. What it says is of each consumer that reads it;
// each reads for itself, in a group of its own.
type Kafka struct {
	// Brokers are host:port. Either Topics has one at least, or TopicPattern
	// is set.
	Brokers, Topics []string
	TopicPattern    string
	// Group is empty for the consumer's name; see GroupOf.
	Group string
	// Instance makes the members static, or is empty.
	Instance string
	// NextGen joins with the brokers' own protocol.
	NextGen bool
	// SessionTimeout is 0 with NextGen, where the brokers' counts.
	SessionTimeout  time.Duration
	Start           kafka.Start
	CommitInterval  time.Duration
	OnLostRecords   kafka.LostRecords
	ReadUncommitted bool
	Format          kafka.Format
	// MaxRecord is in bytes, and so are the others, which are 0 where the
	// policy names none.
	MaxRecord, MaxBatch, MaxFetch, MaxPartitionFetch int64
	// ClientID and Rack are what brokers are told; Rack may be empty.
	ClientID, Rack string
	// TLS and SASL are nil where the policy names none.
	TLS  *TLS
	SASL *SASL
}

// GroupOf is the consumer group in which c reads k.
func (k *Kafka) GroupOf(c *Consumer) string {
	group := c.Name
	if k.Group != "" {
		group = k.Group
	}
	if c.In != nil && c.In.Building {
		return admin.GenerationName(group, c.In.Number)
	}
	return group
}

// TLS says how connections are encrypted. The paths are resolved, and empty
// where the policy names none.
type TLS struct {
	// CA are the authorities in the place of the system's; Cert and Key are of
	// this side.
	CA, Cert, Key string
	// ServerName is expected in the place of the broker's host.
	ServerName string

	off bool
}

// SASL says who this side is. One of the four is set.
type SASL struct {
	Plain, Scram256, Scram512 *Login
	OAuthBearer               *Bearer
}

// Login is a user with a password, which stands here or in a file.
type Login struct{ User, Password, PasswordFile string }

// Bearer is a token, which stands here or in a file.
type Bearer struct{ Token, TokenFile string }

// DeadLetter says where messages go that end as dead letters.
type DeadLetter struct{ Topic string }
