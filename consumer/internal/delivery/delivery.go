// Package delivery recognises what a source delivers: whether a message is the consumer's, its
// identity, its type, its content, and its place in a stream. It asks the message and the rules,
// and no store.
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

// Delivery is a delivery on its way through the engine. Each is one piece of memory
// and holds nothing twice: one that waits must not keep what was fetched with it,
// and what a message costs is mostly that it is written into memory that no cache
// has yet.
type Delivery struct {
	Item machine.Item
	// Message is what the handler sees: a copy, because a source may deliver
	// one Message twice, and the engine writes into it.
	Message semel.Message
	// original and Handle are the source's, which gets them back.
	original *semel.Message
	Handle   any
}

// take takes what p keeps of a delivery.
func (p *Delivery) take(d *source.Delivery) {
	p.Item.Lane, p.Item.Before = d.Lane, int32(min(d.Before, math.MaxInt32))
	p.original, p.Handle = d.Message, d.Handle
	p.Message = *d.Message
	p.Message.Strict = strictjson.Proof{} // what another consumer read need not stand there any more
}

// Delivered returns what the source gets back with Settle.
func (p *Delivery) Delivered() source.Delivery {
	return source.Delivery{Message: p.original, Lane: p.Item.Lane, Before: int(p.Item.Before), Handle: p.Handle}
}

// Key returns the identity of the message, whatever a handler wrote into the message.
func (p *Delivery) Key(consumer string) semel.Key { return KeyOf(consumer, &p.Item) }

// KeyOf returns the identity of the message of an item.
func KeyOf(consumer string, it *machine.Item) semel.Key {
	return semel.Key{Consumer: consumer, Source: it.Source, ID: it.Identity}
}

// routes is the seed of the hash that spreads keys over workers.
var routes = maphash.MakeSeed()

// route spreads messages over workers: by their stream, their key, or their identity. With
// Rules.ByKey, the key comes before the stream.
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

// Read recognises a delivery that came without a fetch.
func Read(c *Rules, d *source.Delivery) *Delivery {
	room := reading.Borrow()
	defer room.Return()
	p := new(Delivery)
	p.read(c, reader{room: room}, d)
	return p
}

// Stored returns the delivery of a row that was claimed. Identity and fingerprint are what it was
// received with, whatever the rules say today. refused is why it never runs, nil if it may.
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
