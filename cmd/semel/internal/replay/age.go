package replay

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/source"
)

// SentAt is when a message was sent, by what a consumer judges its age by: the time that its
// id carries, else that of its record, else that of its event.
func SentAt(c consumer.Config) func(*source.Delivery) time.Time {
	return func(d *source.Delivery) time.Time {
		d.Decode(nil)
		if c.Identity != nil && d.Refused == semel.ReasonNone {
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
