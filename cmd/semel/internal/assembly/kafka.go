package assembly

import (
	"log/slog"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// topics are a source of Kafka that says how far its consumer is behind.
type topics struct {
	*kafka.Source
	*lanes
}

func (a *Assembly) kafkaSource(c *policy.Consumer, s *policy.Source) (source.Source, error) {
	lanes := newLanes(a.options.Logger.With(slog.String("consumer", c.Name), slog.String("source", s.Name)), time.Now)
	config, err := a.kafkaConfig(c, s, lanes)
	if err != nil {
		return nil, err
	}
	src, err := kafka.New(config)
	if err != nil {
		return nil, err
	}
	return &topics{src, lanes}, nil
}

// kafkaConfig is what the policy says of one consumer's source. Each consumer
// reads for itself; a lane that is taken away drains as long as a stop does.
func (a *Assembly) kafkaConfig(c *policy.Consumer, s *policy.Source, lanes *lanes) (kafka.Config, error) {
	k := s.Kafka
	config := kafka.Config{
		Brokers: k.Brokers, Topics: k.Topics, TopicPattern: k.TopicPattern,
		Group: k.GroupOf(c), Instance: k.Instance, NextGen: k.NextGen,
		SessionTimeout: k.SessionTimeout, RevokeTimeout: c.Drain,
		Start: k.Start, CommitInterval: k.CommitInterval, OnLostRecords: k.OnLostRecords, ReadUncommitted: k.ReadUncommitted, Format: k.Format, MaxRecord: int(k.MaxRecord),
		MaxBatch: int(k.MaxBatch), MaxFetch: int(k.MaxFetch), MaxPartitionFetch: int(k.MaxPartitionFetch), ClientID: k.ClientID, Rack: k.Rack,
		Logger: a.options.Logger.With(slog.String("consumer", c.Name)), Observe: lanes.observe,
	}
	if c.Rebuilds() { // the whole of it, as a member of a group of its own
		config.Start, config.Instance = kafka.Start{}, ""
	}
	if c.DeadLetter != nil {
		config.DeadLetters = c.DeadLetter.Topic
	}
	security := security{policy: a.policy, at: "sources." + s.Name + ".kafka"}
	var err error
	if config.TLS, err = security.tls(k.TLS); err != nil {
		return kafka.Config{}, err
	}
	config.SASL, err = security.sasl(k.SASL)
	return config, err
}
