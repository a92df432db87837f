package policy

import "time"

// The table of a handler that publishes to Kafka.

func publishShape() object[Publish] {
	fields := []field[Publish]{
		key(meta{name: "brokers", required: true, doc: "The brokers to ask first, `host:port` each. One text may hold several, with commas between, as variables of the environment do."},
			brokersShape{}, func(p *Publish) *[]string { return &p.Brokers }),
		key(meta{name: "topic", doc: "The topic. It must exist, and is none that the consumer reads. It, or `topic_header`, is required."},
			topicName(), func(p *Publish) *string { return &p.Topic }),
		key(meta{name: "topic_header", doc: "A header of the message that names its topic, which must be one of `topics`. A message without it goes to `topic`; without that, or where another topic is named, it ends as `permanent failure`."},
			word{what: "the name of a header"}, func(p *Publish) *string { return &p.TopicHeader }),
		key(meta{name: "topics", doc: "The topics that `topic_header` may name: whoever writes a message could otherwise write anywhere."},
			list[string]{item: topicName(), single: true}, func(p *Publish) *[]string { return &p.Topics }),
		key(meta{name: "timeout", def: "10s", doc: "The longest that one message waits for the brokers to confirm it. Shorter than `inbox.lease`, and at most `timeout` of the consumer."},
			span{least: 10 * time.Millisecond, most: time.Hour}, func(p *Publish) *time.Duration { return &p.Timeout }),
		key(meta{name: "client_id", def: "semel", doc: "What brokers log, and what their quotas go by."},
			word{what: "a name"}, func(p *Publish) *string { return &p.ClientID }),
	}
	security := securityKeys(func(p *Publish) **TLS { return &p.TLS }, func(p *Publish) **SASL { return &p.SASL })
	return object[Publish]{fields: append(fields, security...)}
}
