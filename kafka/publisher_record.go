package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/twmb/franz-go/pkg/kgo"
)

// record is that of m.
func (p *Publisher) record(m *semel.Message) (*kgo.Record, error) {
	if m.Identity.ID == "" {
		return nil, errors.New("kafka: the message has no Identity, and its record could not be recognised; publish it from a handler, or make it with NewMessage")
	}
	topic, err := p.topicOf(m)
	if err != nil {
		return nil, err
	}
	return message.Record(m, topic), nil
}

func (p *Publisher) topicOf(m *semel.Message) (string, error) {
	c := &p.config
	if c.TopicHeader == "" {
		return c.Topic, nil
	}
	switch named, found := m.Headers.Get(c.TopicHeader); {
	case found && slices.Contains(c.Topics, string(named)):
		return string(named), nil
	case found:
		return "", fmt.Errorf("kafka: the header %s names the topic %s, which is none of those that a message may name", c.TopicHeader, legible.Printable(string(named[:min(len(named), topicName)])))
	case c.Topic == "":
		return "", fmt.Errorf("kafka: the message has no header %s, and no topic is set for such", c.TopicHeader)
	}
	return c.Topic, nil
}
