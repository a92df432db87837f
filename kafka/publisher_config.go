package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
)

// PublisherConfig says where messages are published. The zero value of a field is its
// default; NewPublisher reports every fault at once.
type PublisherConfig struct {
	// Brokers are the first brokers to ask, host:port. Required.
	Brokers []string
	// Topic is where messages go, unless their TopicHeader says otherwise. It, or
	// TopicHeader, is required. It must exist, as every topic: none is made.
	Topic string
	// TopicHeader, when set, is the header by which a message names its topic. One that
	// Topics does not hold is refused: whoever writes a message could write anywhere
	// with it. A message without the header goes to Topic; where that is empty it is
	// refused.
	TopicHeader string
	// Topics are those that a TopicHeader may name. Required with it.
	Topics []string
	// Timeout is how long a call of Publish waits for the brokers; default 10 s. Let it
	// be shorter than the lease of the consumer.
	Timeout time.Duration
	// TLS, when set, is used for every connection.
	TLS *tls.Config
	// SASL, when set, authenticates: github.com/twmb/franz-go/pkg/sasl has plain, scram
	// and oauth.
	SASL []sasl.Mechanism
	// ClientID is what brokers log and limit by; default "semel".
	ClientID string
	// Logger gets the client's warnings; default slog.Default().
	Logger *slog.Logger
}

// defaultPublishTimeout is how long a call of Publish waits unless it is told.
const defaultPublishTimeout = 10 * time.Second

func (c PublisherConfig) withDefaults() PublisherConfig {
	setDefault(&c.Timeout, defaultPublishTimeout)
	setDefault(&c.ClientID, defaultClientID)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate reports every fault of a configuration with its defaults.
func (c PublisherConfig) validate() error {
	err := errors.Join(Config{Brokers: c.Brokers}.validateBrokers(), c.validateTopics())
	if c.Timeout < 0 {
		err = errors.Join(err, fmt.Errorf("kafka: Timeout is %v; use more than 0, or 0 for %v", c.Timeout, defaultPublishTimeout))
	}
	return err
}

func (c PublisherConfig) validateTopics() error {
	var err error
	switch {
	case c.Topic == "" && c.TopicHeader == "":
		err = errors.New("kafka: Topic and TopicHeader are empty; name the topic that messages are published to")
	case c.TopicHeader != "" && len(c.Topics) == 0:
		err = errors.New("kafka: TopicHeader is set and Topics is empty; name the topics that a message may be published to")
	case c.TopicHeader == "" && len(c.Topics) > 0:
		err = errors.New("kafka: Topics are those that TopicHeader may name, and it is empty; set it, or Topic alone")
	}
	for _, topic := range c.all() {
		if fault := topicFault(topic); fault != "" {
			err = errors.Join(err, fmt.Errorf("kafka: topic %q %s", topic, fault))
		}
	}
	return err
}

// all are the topics that can be published to.
func (c PublisherConfig) all() []string {
	all := slices.Clone(c.Topics)
	if c.Topic != "" && !slices.Contains(all, c.Topic) {
		all = append(all, c.Topic)
	}
	return all
}
