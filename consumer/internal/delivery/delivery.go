// Package delivery reads the deliveries of a source. Package delivery determines whether a message is for the consumer,
// and the identity, type, fingerprint and version of the message. The package uses only the message and the rules, and
// no store.
package delivery

import (
	"hash/maphash"
	"math"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Delivery is a delivery that the engine processes. Each Delivery is allocated separately, so that a waiting
// Delivery does not keep the other deliveries of its fetch in memory. Delivery stores nothing twice, because
// most of the cost of a message is writing to memory that is not in the CPU's cache.
type Delivery struct {
	Item machine.Item
	// Message is the message that the handler gets. Message is a copy, because a source may deliver one
	// Message twice, and the engine writes into the message.
	Message semel.Message
	// The fields original and Handle belong to the source, which gets both back from the method Delivered.
	original *semel.Message
	Handle   any
}

// take copies the fields of d into p.
func (p *Delivery) take(d *source.Delivery) {
	p.Item.Lane, p.Item.Before = d.Lane, int32(min(d.Before, math.MaxInt32))
	p.original, p.Handle = d.Message, d.Handle
	p.Message = *d.Message
	p.Message.Strict = strictjson.Proof{} // the body may have changed since another consumer read it
}

// Delivered returns the delivery for the source's Settle.
func (p *Delivery) Delivered() source.Delivery {
	return source.Delivery{Message: p.original, Lane: p.Item.Lane, Before: int(p.Item.Before), Handle: p.Handle}
}

// Key returns the identity of the message as delivered, even if a handler has changed the message.
func (p *Delivery) Key(consumer string) semel.Key { return KeyOf(consumer, &p.Item) }

// KeyOf returns the identity of an item's message.
func KeyOf(consumer string, it *machine.Item) semel.Key {
	return semel.Key{Consumer: consumer, Source: it.Source, ID: it.Identity}
}

// routes is the seed of the hash that distributes keys over workers.
var routes = maphash.MakeSeed()

// route returns the hash that assigns the message to a worker. route hashes the stream or, without a stream,
// the key or, without a key, the identity. With Rules.ByKey, route hashes the key if there is one.
func (p *Delivery) route(c *Rules) uint64 {
	key, version := p.Message.Key, p.Item.Version
	switch {
	case key != nil && (c.ByKey || version == nil):
		return maphash.Bytes(routes, key)
	case version != nil:
		return maphash.String(routes, version.Stream)
	}
	return maphash.String(routes, p.Item.Identity)
}

// Read reads a single delivery that did not come from a fetch.
func Read(c *Rules, d *source.Delivery) *Delivery {
	room := reading.Borrow()
	defer room.Return()
	p := new(Delivery)
	p.read(c, reader{room: room}, d)
	return p
}

// Stored returns the delivery of a claimed row. Identity and fingerprint are taken from the row, even if the rules have
// changed since the row was stored. The parameter refused is the reason why the row must not run, or nil if the row may
// run.
func Stored(c *Rules, row *store.StoredRow, refused *machine.Refusal, handle any) *Delivery {
	p := new(Delivery)
	p.take(&source.Delivery{Message: row.Message, Lane: machine.InboxLane(), Before: source.Unknown, Handle: handle})
	it, m := &p.Item, &p.Message
	it.Source, it.Identity, it.Print = row.Key.Source, row.Key.ID, row.Fingerprint
	it.Refused = refused
	p.setTypeAlone(c)
	if c.Version != nil && it.Refused == nil {
		if err := p.setVersionAlone(c); err != nil {
			p.unversioned(err)
		}
	}
	m.Identity = p.Key(c.Consumer)
	it.Size = clampSize(sizeOf(m) + outputsSize(row.Steps))
	it.Route = p.route(c)
	it.Handle = p
	return p
}
