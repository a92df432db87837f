// Package delivery reads what a source delivers: it finds out whether a message is the consumer's, its
// identity, its type, its fingerprint, and its version. The package uses only the message and the
// rules, and no store.
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

// Delivery is a delivery on its way through the engine. Each Delivery is allocated by itself, so that
// one that waits does not keep the others of its fetch in memory. Delivery holds nothing twice: most
// of the cost of a message is writing it into memory that is not cached yet.
type Delivery struct {
	Item machine.Item
	// Message is what the handler sees: a copy, because a source may deliver
	// one Message twice, and the engine writes into it.
	Message semel.Message
	// original and Handle belong to the source and are returned to it by Delivered.
	original *semel.Message
	Handle   any
}

// take copies what p keeps of a delivery.
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

// Key returns the identity of the message, even if a handler has changed the message.
func (p *Delivery) Key(consumer string) semel.Key { return KeyOf(consumer, &p.Item) }

// KeyOf returns the identity of the message of an item.
func KeyOf(consumer string, it *machine.Item) semel.Key {
	return semel.Key{Consumer: consumer, Source: it.Source, ID: it.Identity}
}

// routes is the seed of the hash that spreads keys over workers.
var routes = maphash.MakeSeed()

// route returns the hash by which the message is assigned to a worker: of its stream, its key, or its
// identity. With Rules.ByKey, the key has priority over the stream.
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

// Stored returns the delivery of a claimed row. Identity and fingerprint are those that the row was
// stored with, even if the rules have changed since. refused is the reason why the row must not run,
// nil if it may.
func Stored(c *Rules, row *store.StoredRow, refused *machine.Refusal, handle any) *Delivery {
	p := new(Delivery)
	p.take(&source.Delivery{Message: row.Message, Lane: machine.InboxLane(), Before: source.Unknown, Handle: handle})
	it, m := &p.Item, &p.Message
	it.Source, it.Identity, it.Print = row.Key.Source, row.Key.ID, row.Fingerprint
	it.Refused = refused
	p.typedAlone(c)
	if c.Version != nil && it.Refused == nil {
		if err := p.placeAlone(c); err != nil {
			p.unversioned(err)
		}
	}
	m.Identity = p.Key(c.Consumer)
	it.Size = sized(sizeOf(m) + outputsSize(row.Steps))
	it.Route = p.route(c)
	it.Handle = p
	return p
}
