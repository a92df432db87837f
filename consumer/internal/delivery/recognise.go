package delivery

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/surrogate"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/source"
)

// read fills p with the data that the machine needs about a delivery.
func (p *Delivery) read(c *Rules, r reader, d *source.Delivery) {
	d.Decode(r.room)
	p.take(d)
	p.Message.Replayed = c.Replay
	kind, partly, unreadable := c.typeOf(r, &p.Message)
	if c.Types.isUndecided() && d.Refused == reasonname.None && !partly {
		c.Types.countMessage(kind != "")
	}
	refused, why := p.recognise(c, r, d, kind, partly)
	if refused == reasonname.None && unreadable != nil {
		refused, why = semel.ReasonMalformed, unreadable
	}
	p.setType(c, kind)
	p.completeItem(c, r, refused, why)
}

var (
	errIdentityGoexit = errors.New("the identity, or what the store makes of it, ended its goroutine (runtime.Goexit)")
	errPrintGoexit    = errors.New("the fingerprinter ended its goroutine (runtime.Goexit)")
)

// handleUnreadable marks a delivery as unusable because a function of the user ended its goroutine. The fields that are
// set already show handleUnreadable which function it was.
func (p *Delivery) handleUnreadable(c *Rules, r reader) {
	if p.Item.Identity == "" {
		p.completeItem(c, r, semel.ReasonBadIdentity, errIdentityGoexit)
		return
	}
	if c.Version != nil && p.Item.Print != (semel.Fingerprint{}) {
		p.completeItem(c, r, reasonname.NoVersion, errVersionGoexit)
		return
	}
	p.completeItem(c, r, semel.ReasonMalformed, errPrintGoexit)
}

// completeItem completes the item. The parameters refused and why are the results of recognise.
func (p *Delivery) completeItem(c *Rules, r reader, refused semel.Reason, why error) {
	m, it := &p.Message, &p.Item
	switch refused {
	case reasonname.None:
		p.recordStrictJSON(r)
	case reasonname.NoVersion:
		p.unversioned(why)
	default:
		p.refuse(c, refused, why)
	}
	m.Identity = p.Key(c.Consumer)
	it.Size = clampSize(sizeOf(m)) // before cut, because the source keeps the whole message in memory
	c.cut(m)
	it.Route = p.route(c)
	it.Handle = p
}

// refuse marks the item as one that never runs. The identity of such an item is a hash of the message (package
// surrogate). If the filter skips the message, no row is written, and the item gets the ids of the message.
func (p *Delivery) refuse(c *Rules, reason semel.Reason, why error) {
	m, it := &p.Message, &p.Item
	foreign := reason == reasonname.Filtered
	if foreign && c.SkipFiltered {
		it.Source, it.Identity = m.Source(), m.ID()
	} else {
		it.Source, it.Identity = surrogate.Source, surrogate.Of(m)
	}
	it.Print = semel.Fingerprint{}
	it.Refused = &machine.Refusal{Reason: reason, Why: why, Foreign: foreign}
}

// Borrowed is implemented by the handle of a delivery whose message belongs to the caller of Process. The caller of
// Process may stop waiting and reuse the memory of the message while the handler runs.
type Borrowed interface{ Borrowed() }

// recordStrictJSON records that the body is strict JSON, which makes later reads of its values faster. If the handle is
// Borrowed, nothing is recorded, because the body may still change.
func (p *Delivery) recordStrictJSON(r reader) {
	if _, borrowed := p.Handle.(Borrowed); !borrowed {
		p.Message.Strict = r.room.Proof(p.Message.Body)
	}
}

// recognise sets identity, fingerprint and version. If the message cannot be processed, recognise returns the reason.
// The parameters kind and partly are results of typeOf.
func (p *Delivery) recognise(c *Rules, r reader, d *source.Delivery, kind string, partly bool) (semel.Reason, error) {
	m := &p.Message
	if missed := c.misses(m, kind, partly || d.Refused != reasonname.None); missed != "" {
		return reasonname.Filtered, fmt.Errorf("its %s is none of those that this consumer takes", missed)
	}
	if d.Refused != reasonname.None {
		return d.Refused, errors.New(d.Detail)
	}
	if c.isTooLarge(m) {
		return semel.ReasonTooLarge, c.tooLarge(m)
	}
	if err := structured.EventFault(m, false); err != nil {
		return semel.ReasonMalformed, err
	}
	return p.name(c, r, m)
}

// name sets identity, fingerprint, version and previous identity.
func (p *Delivery) name(c *Rules, r reader, m *semel.Message) (refused semel.Reason, err error) {
	// A user-defined type may be both identity and fingerprinter, and the fingerprinter may reuse values that the
	// identity has read. So between the calls of identity and fingerprinter, no other message may be read.
	by, prints := c.userTypes()
	if alone := r.alone; alone != nil && by && prints {
		alone <- struct{}{}
		defer func() { <-alone }()
		r.alone = nil // this function has the lock already
	}
	if err = p.identify(c, r, m); err != nil {
		return reasonOf(err, semel.ReasonBadIdentity), err
	}
	if p.Item.Print, err = r.print(c, m); err != nil {
		return reasonOf(err, semel.ReasonMalformed), err
	}
	if c.Version != nil {
		if err = p.setVersion(c, r, m); err != nil {
			return reasonname.NoVersion, err
		}
	}
	p.identifyPrevious(c, r, m)
	return reasonname.None, nil
}

func (p *Delivery) identify(c *Rules, r reader, m *semel.Message) error {
	if c.Identity == nil { // no marker is written, and only an inbox row needs an identity
		p.Item.Source, p.Item.Identity = surrogate.Source, surrogate.Of(m)
		return nil
	}
	source, id, err := r.find(c.Identity, m)
	if err == nil {
		source, id, err = c.fit(source, id)
	}
	p.Item.Source, p.Item.Identity = source, id
	return err
}

func reasonOf(err error, otherwise semel.Reason) semel.Reason {
	var found *identity.Error
	if errors.As(err, &found) && found.Reason != reasonname.None {
		return found.Reason
	}
	return otherwise
}

// unversioned marks a message without a version as unusable. The message keeps its identity, so that its row
// can be retried after the policy was corrected.
func (p *Delivery) unversioned(why error) {
	p.Item.Version = nil
	p.Item.Refused = &machine.Refusal{Reason: reasonname.NoVersion, Why: why, Unversioned: true}
}

// identifyPrevious sets the previous identity of a message. If no previous identity is found, no marker can
// exist under one, and the field stays nil.
func (p *Delivery) identifyPrevious(c *Rules, r reader, m *semel.Message) {
	if c.Previous == nil || c.Identity == nil {
		return
	}
	source, id, err := r.find(c.Previous, m)
	if own := (*identity.Error)(nil); err != nil && errors.As(err, &own) {
		return
	}
	p.Item.Former = &machine.Name{Source: source, Identity: id}
}

var errVersionGoexit = errors.New("the function that finds the version ended its goroutine (runtime.Goexit)")

// setVersion sets the version of a message.
func (p *Delivery) setVersion(c *Rules, r reader, m *semel.Message) error {
	stream, number, err := r.version(c, m)
	if err == nil {
		err = versions.CheckStream(stream)
	}
	if err == nil && number < 1 {
		err = fmt.Errorf("its version is %d; the first is 1", number)
	}
	if err != nil {
		return err
	}
	p.Item.Version = &machine.Version{Stream: stream, Number: number}
	return nil
}

// setVersionAlone does the same as setVersion for a message that did not come from a fetch. If the user's function
// calls runtime.Goexit, the goroutine of the caller ends.
func (p *Delivery) setVersionAlone(c *Rules) error {
	room := reading.Borrow()
	defer room.Return()
	return p.setVersion(c, reader{room: room}, &p.Message)
}

// VersionIn returns the message's version in a stream that begins with start, or the zero value if the
// message has no version.
func (p *Delivery) VersionIn(start int64) versions.Position {
	v := p.Item.Version
	if v == nil {
		return versions.Position{}
	}
	return versions.Position{Stream: []byte(v.Stream), Number: v.Number, Start: start}
}
