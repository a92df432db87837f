package replay

import (
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

// SentAt returns a function that returns the time at which a message was sent. A replay compares the time at
// which a message was sent with the consumer's age limit. The function returns the time in the message's id,
// else the time of the record, else the time of the event.
func SentAt(c consumer.Config) func(*source.Delivery) time.Time {
	return func(d *source.Delivery) time.Time {
		d.Decode(nil)
		if c.Identity != nil && d.Refused == reasonname.None {
			if _, id, err := c.Identity.Identify(d.Message); err == nil {
				if at, ok := c.Retention.IDTime.Of(id); ok {
					return at
				}
			}
		}
		if at := d.Message.Origin.Time(); !at.IsZero() {
			return at
		}
		return d.Message.Time()
	}
}
