package engine

import (
	"context"
	"crypto/sha256"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

// Lines says which messages must wait for earlier messages in the inbox.
type Lines struct {
	// Consumer is the name of the consumer.
	Consumer string
	// ByKey means that messages of a key are processed in order. ByLane means that messages of a lane are processed in
	// order.
	ByKey, ByLane bool
}

// Name appends the name of the queue in which a message waits in the inbox: the queue of its key, or of its lane. For a
// message that waits in no queue, such as a message without a usable identity, Name appends nothing.
func (c Lines) Name(to []byte, p *delivery.Delivery) []byte {
	switch {
	case !c.ByKey && !c.ByLane || p.Item.Refused != nil:
		return to
	case c.ByLane && p.Item.Lane.ID == "":
		return to // an accepted message has no lane
	case c.ByLane:
		return line(to, c.Consumer, 'l', p.Item.Lane.ID)
	case p.Message.Key == nil:
		return to
	}
	return line(to, c.Consumer, 'k', p.Message.Key)
}

// line appends the name of an inbox queue to the slice to, and returns the slice. The name consists of the consumer,
// the kind of the queue (by key or by lane), and the key or lane. A name that is too long is replaced by a hash.
func line[S string | []byte](to []byte, consumer string, of byte, name S) []byte {
	long := len(consumer)+2+len(name) > lines.MaxName
	first := len(to)
	to = append(append(append(to, consumer...), 0, of), name...)
	if long {
		sum := sha256.Sum256(to[first:])
		to = append(append(to[:first], 0), sum[:]...)
	}
	return to
}

// markLine returns the name of the inbox queue for the marker of an entry. A claimed row stays in the queue in which
// the row was stored. The names of all markers share one allocation.
func (p *pilot[Tx]) markLine(names *[]byte, en *machine.Entry) []byte {
	if h := rowOf(en); h != nil {
		return h.Line()
	}
	if !p.engine.lined {
		return nil
	}
	first := len(*names)
	*names = p.engine.config.Lines.Name(*names, en.Item.Handle.(*delivery.Delivery))
	return (*names)[first:len(*names):len(*names)]
}

// AddScopes appends the sources of an item's identity and previous identity to the slice all, and returns the slice. If
// the source of the identity is already the last element of the slice, AddScopes does not add that source again.
func AddScopes(all []scopes.Of, it *machine.Item) []scopes.Of {
	if of := (scopes.Of{Source: it.Source}); len(all) == 0 || all[len(all)-1] != of {
		all = append(all, of)
	}
	if it.Former != nil {
		all = append(all, scopes.Of{Source: it.Former.Source, Previous: true})
	}
	return all
}

// scopes appends the sources of those entries that get a marker to the slice all, and returns the slice.
func (f *flight[Tx]) scopes(all []scopes.Of) []scopes.Of {
	for i, en := range f.Entries {
		if !en.Unmarked && (f.known == nil || f.known[i].Kind == 0) {
			all = AddScopes(all, en.Item)
		}
	}
	return all
}

// markFormer returns the marker of an item's previous identity, or nil if the item has no previous identity. The slice
// ids has enough capacity for the identity.
func (p *pilot[Tx]) markFormer(ctx context.Context, it *machine.Item, ids *[]byte) (*store.Mark, error) {
	if it.Former == nil {
		return nil, nil
	}
	scope, err := p.engine.Scopes.Number(ctx, scopes.Of{Source: it.Former.Source, Previous: true})
	if err != nil {
		return nil, err
	}
	first := len(*ids)
	*ids = append(*ids, it.Former.Identity...)
	return &store.Mark{Scope: scope, ID: (*ids)[first:len(*ids):len(*ids)], Strict: p.engine.config.StrictPrevious}, nil
}

// versionOf returns the version of a message for its marker, or the zero value if the message has no version.
func (c *Config) versionOf(p *delivery.Delivery, asks bool) versions.Position {
	v := p.VersionIn(c.VersionStart)
	v.Asks = asks && p.Item.Version != nil
	return v
}

// asksStream reports whether the store compares the message's version with its stream. The parameter as is the outcome
// with which the message ends.
func asksStream(as machine.As) bool {
	switch as {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsBlocked, machine.AsOverdue:
		return true
	}
	return false
}
