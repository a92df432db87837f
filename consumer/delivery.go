package consumer

import (
	"math"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/source"
)

// parcel is a delivery on its way through the engine. Each is one piece of memory
// and holds nothing twice: one that waits must not keep what was fetched with it,
// and what a message costs is mostly that it is written into memory that no cache
// has yet.
type parcel struct {
	item machine.Item
	// message is what the handler sees: a copy, because a source may deliver
	// one Message twice, and the engine writes into it.
	message semel.Message
	// delivered and handle are the source's, which gets them back.
	delivered *semel.Message
	handle    any
}

// take takes what the parcel keeps of a delivery.
func (p *parcel) take(d *source.Delivery) {
	p.item.Lane, p.item.Before = d.Lane, int32(min(d.Before, math.MaxInt32))
	p.delivered, p.handle = d.Message, d.Handle
	p.message = *d.Message
	p.message.Strict = strictjson.Proof{} // what another consumer read need not stand there any more
}

// delivery is what the source gets back with Settle.
func (p *parcel) delivery() source.Delivery {
	return source.Delivery{Message: p.delivered, Lane: p.item.Lane, Before: int(p.item.Before), Handle: p.handle}
}

// row is the row of a claim, nil for a delivery of the broker's.
func (p *parcel) row() *heldRow {
	h, _ := p.handle.(*heldRow)
	return h
}

// key is the message's identity, whatever a handler wrote into the message.
func (p *parcel) key(c *settings) semel.Key { return keyOf(c.Name, &p.item) }

// keyOf is what a consumer's item is called.
func keyOf(consumer string, it *machine.Item) semel.Key {
	return semel.Key{Consumer: consumer, Source: it.Source, ID: it.Identity}
}
