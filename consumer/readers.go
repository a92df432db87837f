package consumer

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
)

// readers read the deliveries of one fetch by all cores. They begin and end with
// it, so that nothing is handed on late and no lane overtakes another.
type readers struct {
	rooms []*reading.Room
	// alone has a place for one: a function of the user's that runs. It is no
	// mutex, so that virtual time passes while others wait for it.
	alone chan struct{}
}

// reader is what one goroutine reads with.
type reader struct {
	room *reading.Room
	// alone, when set, is taken while a function of the user's own runs: it was
	// never called for two messages of a run at once, and one with a buffer of
	// its own would make wrong fingerprints without anybody noticing.
	alone chan struct{}
}

// perReader is for how many bytes another goroutine is worth its start: what one
// reads in a part of a millisecond.
const perReader = 64 << 10

// perTurn is about how many bytes a reader takes at a time.
const perTurn = 16 << 10

// items reads deliveries; they stay in their order.
func (r *readers) items(c *settings, deliveries []source.Delivery) []*machine.Item {
	if len(deliveries) == 0 {
		return nil
	}
	bytes := 0
	for i := range deliveries {
		bytes += messageOverhead/4 + len(deliveries[i].Message.Body)
	}
	f := &fetched{config: c, deliveries: deliveries, items: make([]*machine.Item, len(deliveries))}
	f.turn = int64(min(max(1, perTurn*len(deliveries)/bytes), len(deliveries)))
	r.read(f, min(bytes/perReader, len(deliveries), runtime.GOMAXPROCS(0)))
	return f.items
}

// read reads with n goroutines, the caller's among them. Where functions of the
// user's run, or their store's FitIdentity, the caller only waits: one that ends
// its goroutine must not end the one that fetches.
func (r *readers) read(f *fetched, n int) {
	n = max(1, n)
	by, prints := f.config.usersOwn()
	f.own = by || prints || f.config.limits.FitIdentity != nil
	for len(r.rooms) < n {
		r.rooms = append(r.rooms, new(reading.Room))
	}
	if r.alone == nil {
		r.alone = make(chan struct{}, 1)
	}
	var group worker.Group
	defer group.Wait()
	for i := 1; i < n; i++ {
		group.Go(func() { f.read(reader{r.rooms[i], r.alone}) })
	}
	mine := reader{r.rooms[0], r.alone}
	if !f.own {
		f.read(mine)
		return
	}
	group.Go(func() { f.read(mine) })
	group.Wait()
	for slices.Contains(f.items, nil) {
		group.Go(func() { f.finish(mine) })
		group.Wait()
	}
}

// fetched is a fetch that is being read.
type fetched struct {
	config     *settings
	deliveries []source.Delivery
	items      []*machine.Item
	own        bool // functions of the user's run, or what their store makes of an id
	// turn is how many are taken at a time, taken how many were.
	turn  int64
	taken atomic.Int64
}

// read takes turns until none is left.
func (f *fetched) read(r reader) {
	defer r.room.Forget()
	for {
		end := f.taken.Add(f.turn)
		first := end - f.turn
		if first >= int64(len(f.deliveries)) {
			return
		}
		for i := first; i < min(end, int64(len(f.deliveries))); i++ {
			f.one(r, int(i))
		}
	}
}

// finish reads what a goroutine left that a function of the user's ended
// (runtime.Goexit). The message that it ran for is not among it.
func (f *fetched) finish(r reader) {
	defer r.room.Forget()
	for i := range f.items {
		if f.items[i] == nil {
			f.one(r, i)
		}
	}
}

// one reads a delivery. Each is for itself: one that waits must not keep the
// memory of all that were fetched with it.
func (f *fetched) one(r reader, i int) {
	p := new(parcel)
	r.room.Begin()
	if f.own {
		f.ownOne(r, i, p)
		return
	}
	d := f.deliveries[i] // the source may keep its own
	p.read(f.config, r, &d)
	f.items[i] = &p.item
}

// ownOne reads a delivery with functions of the user's. One that ends its
// goroutine (runtime.Goexit) is that message's failure: what is deferred here
// still runs, and others read the rest.
func (f *fetched) ownOne(r reader, i int, p *parcel) {
	returned := false
	defer func() {
		if !returned {
			p.unread(f.config, r)
		}
		f.items[i] = &p.item
	}()
	d := f.deliveries[i]
	p.read(f.config, r, &d)
	returned = true
}

// readAlone reads a delivery that came without a fetch.
func (p *parcel) readAlone(c *settings, m *semel.Message) {
	room := reading.Borrow()
	defer room.Return()
	p.read(c, reader{room: room}, &source.Delivery{Message: m, Before: source.Unknown})
}

// find asks an identity. One of a type of the user's is not known to read in a
// room, also where it holds one of ours.
func (r reader) find(by identity.Identity, m *semel.Message) (source, id string, err error) {
	if own, ok := by.(*identity.Selected); ok {
		return own.FindIn(r.room, m)
	}
	r.own(func() { source, id, err = identity.Find(by, m) })
	return source, id, err
}

// print is the message's fingerprint.
func (r reader) print(c *settings, m *semel.Message) (f semel.Fingerprint, err error) {
	defer notPrinting(c, &f, &err)
	if ours, ok := c.Fingerprint.(reading.Printer); ok {
		f, err = ours.FingerprintIn(r.room, m)
	} else {
		r.own(func() { f, err = c.Fingerprint.Fingerprint(m) })
	}
	return f, legible.Error(err, decidedAgain)
}

// usersOwn reports whether identity and fingerprint are of types of the user's.
func (c *settings) usersOwn() (by, prints bool) {
	_, selected := c.Identity.(*identity.Selected)
	_, ours := c.Fingerprint.(reading.Printer)
	formerly := true
	if c.PreviousIdentity != nil {
		_, formerly = c.PreviousIdentity.Identity.(*identity.Selected)
	}
	return !selected && c.Identity != nil || !formerly, !ours
}

// own runs a function of the user's own. What it did to the body nobody knows,
// so that it is read anew.
func (r reader) own(run func()) {
	if r.alone != nil {
		r.alone <- struct{}{}
		defer func() { <-r.alone }()
	}
	defer r.room.Begin()
	run()
}
