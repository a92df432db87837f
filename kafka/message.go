package kafka

import (
	"encoding/base64"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
)

// Headers that the source itself adds to a delivery.
const (
	// HeaderTombstone has the value "true" where the record's value was null.
	// The body is empty then, as it is for a value of 0 bytes.
	HeaderTombstone = message.HeaderTombstone
	// HeaderLength is the length in bytes, in decimal digits, of the value of
	// a record that is too large, and of a dead letter that was cut because
	// its topic takes no records of its size. A record that has it already is
	// such a letter, and refused as too large.
	HeaderLength = semel.HeaderLength
)

func (c *Config) decoder() *message.Decoder {
	return message.NewDecoder(c.MaxRecord, c.Format == CloudEvents)
}

// deliveriesOf makes deliveries of records. They are not settled yet, and only who fetched
// them can settle them, so what is raw is there.
func deliveriesOf(records []*record, decoder *message.Decoder) []source.Delivery {
	if len(records) == 0 {
		return nil
	}
	out := make([]source.Delivery, len(records))
	for i, r := range records {
		m := &r.message
		if r.detached {
			m = new(semel.Message)
		} else {
			r.detach()
		}
		out[i] = source.Delivery{Message: m, Lane: r.lane.id, Before: source.Unknown, Handle: r}
		decoder.Read(r.raw, brokerID(r), &out[i])
	}
	return out
}

// brokerID names a record for as long as its topic lives: the topic's id
// instead of its name, which another topic can have later.
func brokerID(r *record) string {
	b := make([]byte, 0, 64)
	if r.lane.topicID == noTopicID {
		b = append(b, r.raw.Topic...)
	} else {
		b = base64.RawURLEncoding.AppendEncode(b, r.lane.topicID[:])
	}
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(r.raw.Partition), 10)
	b = append(b, '/')
	return string(strconv.AppendInt(b, r.raw.Offset, 10))
}
