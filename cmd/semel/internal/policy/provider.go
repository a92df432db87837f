package policy

import "github.com/semel-go/semel/consumer"

// provider is what is known of the other side of a consumer that calls out.
func (c *Consumer) provider() consumer.Provider {
	switch h := c.Handler.HTTP; {
	case c.Handler.Kafka != nil: // who reads the topic recognises a copy whenever it comes
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.Effects != nil: // what it is asked for is in its answer
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayDouble != "":
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayBeLost != "":
		return consumer.Provider{Window: consumer.WindowNever, OnUnknown: consumer.ActionDiscard}
	}
	return c.Handler.HTTP.provider()
}
