package recording

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// Recorder records one machine at a time. Event and Actions are called by its loop,
// everything else by anybody.
type Recorder struct {
	size int
	hide hider

	mutex  sync.Mutex
	run    *run    // nil: nothing has begun; guarded by mutex
	broken *Broken // the first law that was broken; guarded by mutex
}

// segments are so many that dropping one leaves most of the ring.
const segments = 4

// run is what is recorded of one machine.
type run struct {
	name    string
	config  machine.Config
	began   time.Time
	ring    [segments]segment
	current int // in the ring
	used    int // how many segments are
	known   known
	watch   watch
	event   machine.Event // of the step under way
	now     time.Duration
	last    time.Duration // of the step before
	events  eventWriter
	actions actionWriter
	painter painter
}

// segment is a picture and the steps behind it.
type segment struct {
	out []byte
	// began is when its picture was drawn, body where its steps begin, whole where the
	// last step that has ended ends.
	began       time.Duration
	body, whole int
}

// New returns a recorder whose ring takes about size bytes, and in addition what pictures
// of the machine take. With ids the messages' own names are recorded.
func New(size int, ids bool) *Recorder {
	return &Recorder{size: max(size, segments<<7), hide: hider{seed: maphash.MakeSeed(), ids: ids}}
}

// Begin records a machine that has made no step yet, and forgets what was before.
func (r *Recorder) Begin(name string, m *machine.Machine, c machine.Config, at time.Time) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.run = &run{name: name, config: c, began: at, known: known{Machine: m, Flights: make([]*machine.Flight, c.Workers)}}
	r.run.watch.workers = make([]watched, c.Workers)
	r.run.events.known = &r.run.known
	r.run.events.hide, r.run.actions.hide, r.run.painter.hide = &r.hide, &r.hide, &r.hide
	r.run.open(0)
}

// Event records what the machine is about to be told.
func (r *Recorder) Event(e machine.Event, now time.Duration) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	u := r.run
	if s := &u.ring[u.current]; len(s.out)-s.body > r.size/segments {
		u.current = (u.current + 1) % segments
		u.open(u.last)
	}
	u.event, u.now = e, now
	s := &u.ring[u.current]
	w := &u.events
	w.out = s.out
	w.time(now - u.last)
	w.event(e)
	s.out, w.out = w.out, nil
	u.last = now
}

// Actions records what the machine decided, and returns the law that this breaks, if it is
// the first.
func (r *Recorder) Actions(all []machine.Action) *Broken {
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	u := r.run
	s := &u.ring[u.current]
	w := &u.actions
	w.out = s.out
	w.uint(uint64(len(all)))
	w.actions(all)
	s.out, w.out = w.out, nil
	s.whole = len(s.out)
	u.known.step(u.event, all)
	if r.broken != nil {
		return nil
	}
	r.broken = u.watch.step(u.event, u.now, all)
	return r.broken
}

// open begins the current segment with a picture.
func (u *run) open(at time.Duration) {
	s := &u.ring[u.current]
	u.used = min(u.used+1, segments)
	p := &u.painter
	p.out = s.out[:0]
	p.time(at)
	p.paint(&u.known)
	s.out, p.out = p.out, nil
	s.began, s.body, s.whole = at, len(s.out), len(s.out)
	u.events.last = nil
}

// pieces are copies of the segments, the oldest first.
func (u *run) pieces() (all []piece) {
	for i := range u.used {
		s := &u.ring[(u.current+segments+1-u.used+i)%segments]
		all = append(all, piece{Picture: append([]byte(nil), s.out[:s.body]...), Steps: append([]byte(nil), s.out[s.body:]...)})
	}
	return all
}
