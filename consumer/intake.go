package consumer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/surrogate"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// intake fetches, one call at a time, and finds identities and fingerprints,
// so that the loop has only decisions to make.
type intake struct {
	config   *settings
	source   source.Source
	info     source.Info // of source
	orders   chan machine.Fetch
	reporter *reporter
	reaping  *reaping
	ages     *laneAges
	readers  readers
	control  controls // zero for Process
	known    bool     // the source has answered; of the goroutine that fetches
	may      bool     // Config.MayEnd said so when it was asked last; of that goroutine, too

	mutex    sync.Mutex
	cancel   context.CancelFunc // of the Fetch under way; guarded by mutex
	asking   context.CancelFunc // of the question whether there is more; guarded by mutex
	canceled bool               // the last order, begun or not; guarded by mutex
	idle     bool               // it was canceled to end the run; guarded by mutex
	left     []semel.Unfinished // as the source said last; guarded by mutex
}

// order asks for one Fetch; the one before it has been answered.
func (t *intake) order(a machine.Fetch) {
	t.mutex.Lock()
	t.cancel, t.asking, t.canceled, t.idle = nil, nil, false, false
	t.mutex.Unlock()
	t.orders <- a
}

// cancelFetch ends the Fetch that was ordered last; idle says that the run would
// end for it, so that the source is asked whether it has more. Otherwise nobody
// waits for that, and a question under way ends, too.
func (t *intake) cancelFetch(idle bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.canceled, t.idle = true, idle
	if t.cancel != nil {
		t.cancel()
	}
	if t.asking != nil && !idle {
		t.asking()
	}
}

func (t *intake) begin(base context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(base)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.cancel = cancel
	if t.canceled {
		cancel()
	}
	return ctx, cancel
}

func (t *intake) work(base context.Context, events chan<- machine.Event) {
	for {
		var order machine.Fetch
		select {
		case order = <-t.orders:
		case <-base.Done():
			return
		}
		t.answer(base, order, events)
	}
}

var errFetchGoexit = errors.New("the source ended its goroutine while it was asked for messages (runtime.Goexit)")

// answer answers an order, also if the goroutine is ended in it: then what is
// deferred here still runs, and a new goroutine takes the next order. Once the
// source has returned, what it gave is read and handed on, whoever ends it.
func (t *intake) answer(base context.Context, order machine.Fetch, events chan<- machine.Event) {
	e := machine.Fetched{Failed: true, Err: errFetchGoexit}
	defer func() {
		select {
		case events <- e:
		case <-base.Done():
		}
	}()
	ctx, cancel := t.begin(base)
	defer cancel()
	if order.Messages = t.control.AdmitFetch(ctx, order.Messages, cancel); order.Messages == 0 {
		e = machine.Fetched{Unanswered: true}
		return
	}
	var deliveries []source.Delivery
	var err error
	returned := false
	defer func() {
		if returned {
			e = t.read(ctx, base, deliveries, err)
		}
	}()
	t.ages.asks(true)
	defer t.ages.asks(false)
	err = notPanicking(t.config, "Fetch", func() (err error) {
		deliveries, err = t.source.Fetch(ctx, source.Bound{Messages: order.Messages, Bytes: order.Bytes})
		return err
	})
	returned = true
	t.control.Fetched(len(deliveries))
	t.config.at(faults.AfterFetch, len(deliveries))
}

// read makes the event of what the source returned; ctx is that of the Fetch.
func (t *intake) read(ctx, base context.Context, deliveries []source.Delivery, err error) machine.Fetched {
	if !t.known && (err == nil || errors.Is(err, source.ErrEnd)) {
		t.known = true
		t.reporter.SourceAnswered()
	}
	e := machine.Fetched{Items: t.readers.items(t.config, deliveries), End: errors.Is(err, source.ErrEnd)}
	t.reaping.delivered(e.Items)
	switch {
	case err == nil && len(deliveries) == 0 && t.control.Paused():
		e.Unanswered = true // it was ended for that
	case err == nil && len(deliveries) == 0:
		t.askIdle(base, &e)
	case err == nil || e.End:
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		e.Unanswered = len(deliveries) == 0
	case base.Err() == nil:
		e.Failed, e.Err = true, err
	}
	return e
}

// routes is the seed of the hash that spreads keys over workers.
var routes = maphash.MakeSeed()

// read finds what the machine must know of a delivery.
func (p *parcel) read(c *settings, r reader, d *source.Delivery) {
	d.Decode(r.room)
	p.take(d)
	p.message.Replayed = c.Replay
	kind, partly, unreadable := c.typeOf(r, &p.message)
	if c.kinds.deciding() && d.Refused == semel.ReasonNone && !partly {
		c.kinds.saw(kind != "")
	}
	refused, why := p.recognise(c, r, d, kind, partly)
	if refused == semel.ReasonNone && unreadable != nil {
		refused, why = semel.ReasonMalformed, unreadable
	}
	p.typed(c, kind)
	p.become(c, r, refused, why)
}

var (
	errIdentityGoexit = errors.New("the identity, or what the store makes of it, ended its goroutine (runtime.Goexit)")
	errPrintGoexit    = errors.New("the fingerprinter ended its goroutine (runtime.Goexit)")
)

// unread is what becomes of a delivery for which a function of the user's ended
// its goroutine. There is a key as soon as the identity has returned.
func (p *parcel) unread(c *settings, r reader) {
	if p.item.Identity == "" {
		p.become(c, r, semel.ReasonBadIdentity, errIdentityGoexit)
		return
	}
	if c.Version != nil && p.item.Print != (semel.Fingerprint{}) {
		p.become(c, r, semel.ReasonNoVersion, errVersionGoexit)
		return
	}
	p.become(c, r, semel.ReasonMalformed, errPrintGoexit)
}

// become makes the item of what was recognised.
func (p *parcel) become(c *settings, r reader, refused semel.Reason, why error) {
	m, it := &p.message, &p.item
	switch refused {
	case semel.ReasonNone:
		p.prove(r)
	case semel.ReasonNoVersion:
		p.unversioned(why)
	default:
		p.refuse(c, refused, why)
	}
	m.Identity = p.key(c)
	it.Size = sized(sizeOf(m)) // the delivery holds all of it
	c.cut(m)
	it.Route = p.routeOf(c.Lanes)
	it.Handle = p
}

// refuse makes the item one that never runs. It is named after what it is, unless
// it is another consumer's and no row will need a name.
func (p *parcel) refuse(c *settings, reason semel.Reason, why error) {
	m, it := &p.message, &p.item
	foreign := reason == semel.ReasonFiltered
	if foreign && c.OnFiltered == OnFilteredSkip {
		it.Source, it.Identity = m.Source(), m.ID()
	} else {
		it.Source, it.Identity = surrogate.Source, surrogate.Of(m)
	}
	it.Print = semel.Fingerprint{}
	it.Refused = &machine.Refusal{Reason: reason, Why: why, Foreign: foreign}
}

// prove keeps that the body was read as strict JSON, for who seeks values in it.
// The memory of a call's message is its caller's, who may not wait for the
// handler: what is sought there must be safe from any bytes.
func (p *parcel) prove(r reader) {
	if _, call := p.handle.(answerPlace); !call {
		p.message.Strict = r.room.Proof(p.message.Body)
	}
}

// recognise fills key and fingerprint, or says why there are none. kind and partly are as
// typeOf found them.
func (p *parcel) recognise(c *settings, r reader, d *source.Delivery, kind string, partly bool) (semel.Reason, error) {
	m := &p.message
	if missed := c.Filter.misses(m, kind, partly || d.Refused != semel.ReasonNone); missed != "" {
		return semel.ReasonFiltered, fmt.Errorf("its %s is none of those that this consumer takes", missed)
	}
	if d.Refused != semel.ReasonNone {
		return d.Refused, errors.New(d.Detail)
	}
	if c.isTooLarge(m) {
		return semel.ReasonTooLarge, c.tooLarge(m)
	}
	if err := identity.EventFault(m, false); err != nil {
		return semel.ReasonMalformed, err
	}
	return p.name(c, r, m)
}

// name finds identity and fingerprint.
func (p *parcel) name(c *settings, r reader, m *semel.Message) (refused semel.Reason, err error) {
	// One type of the user's may be both, and keep what it read for the one until it
	// is asked for the other, so that no other message may come between.
	by, prints := c.usersOwn()
	if alone := r.alone; alone != nil && by && prints {
		alone <- struct{}{}
		defer func() { <-alone }()
		r.alone = nil // it is ours already
	}
	if err = p.identify(c, r, m); err != nil {
		return reasonOf(err, semel.ReasonBadIdentity), err
	}
	if p.item.Print, err = r.print(c, m); err != nil {
		return reasonOf(err, semel.ReasonMalformed), err
	}
	if c.Version != nil {
		if err = p.place(c, r, m); err != nil {
			return semel.ReasonNoVersion, err
		}
	}
	p.identifyFormer(c, r, m)
	return semel.ReasonNone, nil
}

func (p *parcel) identify(c *settings, r reader, m *semel.Message) error {
	if c.Identity == nil { // natural: only a row will ever need one
		p.item.Source, p.item.Identity = surrogate.Source, surrogate.Of(m)
		return nil
	}
	source, id, err := r.find(c.Identity, m)
	if err == nil {
		source, id, err = c.fit(source, id)
	}
	p.item.Source, p.item.Identity = source, id
	return err
}

func reasonOf(err error, otherwise semel.Reason) semel.Reason {
	var found *identity.Error
	if errors.As(err, &found) && found.Reason != semel.ReasonNone {
		return found.Reason
	}
	return otherwise
}

// messageOverhead is what a delivery holds besides its bytes, roughly: the
// engine's parcel, and the source's message.
const messageOverhead = 1024

// sized is a size as an item has it.
func sized(n int) int32 { return int32(min(n, math.MaxInt32)) }

func sizeOf(m *semel.Message) int {
	n := messageOverhead + len(m.Body) + len(m.Key)
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}
