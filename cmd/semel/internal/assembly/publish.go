package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka"
)

// lookWithin is how long brokers may take to say whether the topics are there.
const lookWithin = 5 * time.Second

// publisher makes the handler of a consumer that publishes, which is closed with the
// assembly. Topics that are not there are a fault; brokers that do not answer are none.
func (a *Assembly) publisher(ctx context.Context, c *policy.Consumer) (caller, error) {
	h := c.Handler.Kafka
	config := kafka.PublisherConfig{
		Brokers: h.Brokers, Topic: h.Topic, TopicHeader: h.TopicHeader, Topics: h.Topics, Timeout: h.Timeout, ClientID: h.ClientID,
		Logger: a.options.Logger.With(slog.String("consumer", c.Name)),
	}
	security := security{policy: a.policy, at: "consumers." + c.Name + ".handler.kafka"}
	var err error
	if config.TLS, err = security.tls(h.TLS); err != nil {
		return nil, err
	}
	if config.SASL, err = security.sasl(h.SASL); err != nil {
		return nil, err
	}
	publisher, err := kafka.NewPublisher(config)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.kafka: %w", c.Name, err)
	}
	a.publishers = append(a.publishers, publisher)
	look, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if err := publisher.Check(look); err != nil {
		return nil, a.policy.Fault("consumers."+c.Name+".handler.kafka", err.Error(), "see docs/kafka.md")
	}
	return func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return publisher.Publish(ctx, m) }, nil
}
