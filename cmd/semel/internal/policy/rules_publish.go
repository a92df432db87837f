package policy

import (
	"fmt"
	"slices"
)

// publishes judges a handler that publishes to Kafka.
func (r rules) publishes(p *Publish, from *Source) {
	const at = "handler.kafka."
	switch {
	case p.Topic == "" && p.TopicHeader == "":
		r.refuse("handler.kafka", "nothing says which topic is published to", "add topic: NAME, or topic_header and topics")
	case p.TopicHeader != "" && len(p.Topics) == 0:
		r.refuse(at+"topic_header", "whoever writes a message could write to any topic with it", "add topics: […], those that it may name")
	case p.TopicHeader == "" && len(p.Topics) > 0:
		r.refuse(at+"topics", "they are those that topic_header may name, and there is none", "write topic: NAME, or add topic_header")
	}
	for _, key := range []string{"topic", "topics"} {
		for _, topic := range p.destinations(key) {
			r.comesBack(at+key, topic, p, from)
		}
	}
	kafkaRules{r.decoder, &Kafka{TLS: p.TLS, SASL: p.SASL}, r.at + ".handler.kafka"}.encryption()
}

// comesBack refuses to publish what the consumer itself would read.
func (r rules) comesBack(key, topic string, p *Publish, from *Source) {
	if from == nil || from.Kafka == nil || !oneCluster(&Kafka{Brokers: p.Brokers}, from.Kafka) {
		return
	}
	if slices.Contains(from.Kafka.Topics, topic) || from.Kafka.matches(topic) {
		r.refuse(key, fmt.Sprintf("source %s reads topic %q: what is published would come back as a message", from.Name, topic), "name another topic")
	}
}
