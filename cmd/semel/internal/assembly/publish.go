package assembly

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka"
)

// publisher makes the handler of a consumer that publishes. It connects to nobody yet,
// and is closed with the assembly.
func (a *Assembly) publisher(c *policy.Consumer) (caller, error) {
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
	return func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return publisher.Publish(ctx, m) }, nil
}
