package policy

import (
	"slices"
	"time"
)

// Publish is a handler that publishes each message to Kafka.
type Publish struct {
	// Brokers are host:port.
	Brokers []string
	// Topic is where messages go, unless their TopicHeader names one of Topics. It or
	// TopicHeader is set.
	Topic, TopicHeader string
	Topics             []string
	// Timeout is how long one call waits for the brokers.
	Timeout time.Duration
	// ClientID is what brokers are told.
	ClientID string
	// TLS and SASL are nil where the policy names none.
	TLS  *TLS
	SASL *SASL
}

// destinations are the topics that can be published to, by the key that names them.
func (p *Publish) destinations(key string) []string {
	if key == "topic" {
		return slices.DeleteFunc([]string{p.Topic}, func(t string) bool { return t == "" })
	}
	return p.Topics
}

// outside is what calls out, whatever it calls.
type outside struct {
	// at is its path below the consumer's.
	at string
	// timeout is of one call.
	timeout time.Duration
}

// outside is nil where the handler does not call out.
func (h *Handler) outside() *outside {
	switch {
	case h.HTTP != nil:
		return &outside{"handler.http", h.HTTP.Timeout}
	case h.Kafka != nil:
		return &outside{"handler.kafka", h.Kafka.Timeout}
	}
	return nil
}
