package delivery

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
)

// Readers read the deliveries of a fetch on all cores. The goroutines of Readers end before Items returns, so that no
// delivery is late and the order of deliveries does not change.
type Readers struct {
	rooms []*reading.Room
	// alone serves as a lock while a function of the user runs. The lock is a channel and not a mutex, so that virtual
	// time passes in tests while goroutines wait for the lock.
	alone chan struct{}
}

// bytesPerReader is the number of bytes that justify the start of another goroutine. To read bytesPerReader bytes, a
// goroutine needs a fraction of a millisecond.
const bytesPerReader = 64 << 10

// bytesPerChunk is approximately the number of bytes that a reader takes at a time.
const bytesPerChunk = 16 << 10

// Items reads deliveries and returns their items in the same order.
func (r *Readers) Items(c *Rules, deliveries []source.Delivery) []*machine.Item {
	if len(deliveries) == 0 {
		return nil
	}
	bytes := 0
	for i := range deliveries {
		bytes += messageOverhead/4 + len(deliveries[i].Message.Body)
	}
	f := &fetched{rules: c, deliveries: deliveries, items: make([]*machine.Item, len(deliveries))}
	f.chunkSize = int64(min(max(1, bytesPerChunk*len(deliveries)/bytes), len(deliveries)))
	r.read(f, min(bytes/bytesPerReader, len(deliveries), runtime.GOMAXPROCS(0)))
	return f.items
}

// read reads with n goroutines, including the caller's goroutine. If functions of the user or the store's FitIdentity
// are called, the caller only waits: a user's function may end its goroutine, and must not end the goroutine that
// fetches.
func (r *Readers) read(f *fetched, n int) {
	n = max(1, n)
	by, prints := f.rules.userTypes()
	f.callsUser = by || prints || f.rules.FitIdentity != nil
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
	if !f.callsUser {
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

// fetched contains the deliveries of a fetch that are being read.
type fetched struct {
	rules      *Rules
	deliveries []source.Delivery
	items      []*machine.Item
	callsUser  bool // functions of the user, or the store's FitIdentity, are called
	// chunkSize is the number of deliveries that a reader takes at a time. takenCount is the number of
	// deliveries that were taken so far.
	chunkSize  int64
	takenCount atomic.Int64
}

// read takes and reads deliveries until no delivery is left.
func (f *fetched) read(r reader) {
	defer r.room.Forget()
	for {
		end := f.takenCount.Add(f.chunkSize)
		first := end - f.chunkSize
		if first >= int64(len(f.deliveries)) {
			return
		}
		for i := first; i < min(end, int64(len(f.deliveries))); i++ {
			f.readOne(r, int(i))
		}
	}
}

// finish reads the deliveries that are unread because a function of the user ended the goroutine that read them
// (runtime.Goexit). The message for which the user's function was called counts as read.
func (f *fetched) finish(r reader) {
	defer r.room.Forget()
	for i := range f.items {
		if f.items[i] == nil {
			f.readOne(r, i)
		}
	}
}

// readOne reads a delivery into newly allocated memory. With shared memory, a waiting delivery would keep the
// memory of all deliveries of the same fetch.
func (f *fetched) readOne(r reader, i int) {
	p := new(Delivery)
	r.room.Begin()
	if f.callsUser {
		f.readOneWithUser(r, i, p)
		return
	}
	d := f.deliveries[i] // a copy, because the source may keep its own value
	p.read(f.rules, r, &d)
	f.items[i] = &p.Item
}

// readOneWithUser reads a delivery with functions of the user. If a user's function ends its goroutine
// (runtime.Goexit), the deferred function marks the message as unreadable, and finish reads the remaining messages.
func (f *fetched) readOneWithUser(r reader, i int, p *Delivery) {
	returned := false
	defer func() {
		if !returned {
			p.handleUnreadable(f.rules, r)
		}
		f.items[i] = &p.Item
	}()
	d := f.deliveries[i]
	p.read(f.rules, r, &d)
	returned = true
}
