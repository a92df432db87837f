package operate

import "github.com/semel-go/semel/kafka"

// TopicDetail is one letter of a topic with its headers and payload where they were asked for.
type TopicDetail struct {
	TopicLetter
	Type string `json:"type"`
	Size int    `json:"size"`
	// Headers are those of the record that it is the copy of.
	Headers       []HeaderView `json:"headers,omitempty"`
	Payload       *string      `json:"payload,omitempty"`
	PayloadBase64 string       `json:"payload_base64,omitempty"`
}

// NewTopicDetail shows a letter; payload says that headers and payload are shown too.
func NewTopicDetail(joined TopicLetter, l kafka.Letter, payload bool) TopicDetail {
	m := l.Delivery.Message
	d := TopicDetail{TopicLetter: joined, Type: m.Type(), Size: len(m.Body)}
	if !payload {
		return d
	}
	d.Headers = headersOf(m.Headers)
	d.Payload, d.PayloadBase64 = payloadOf(m.Body)
	return d
}
