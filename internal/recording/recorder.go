package recording

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// Recorder holds the recording of the machine that began last.
type Recorder struct {
	// Broken, if set, is called with the first law that a machine violates; see Tell.
	Broken func(law string)

	size    int
	hide    hider
	telling sync.Once

	mutex sync.Mutex
	tape  *Tape // nil before the first Begin; guarded by mutex
}

// segments is the number of segments in the ring: enough that dropping one keeps most of it.
const segments = 4

// Tape is the recording of one machine. The machine's loop calls Event and Actions.
type Tape struct {
	size  int
	began time.Time
	name  string

	// mutex guards the fields below, because the recording may be written during a step.
	mutex   sync.Mutex
	config  machine.Config
	ring    [segments]segment
	current int // the index of the current segment
	used    int // the number of segments in use
	known   known
	watch   watch
	event   machine.Event // the event of the current step
	now     time.Duration
	last    time.Duration // the time of the previous step
	writer  writer
	broken  bool // a violation was reported
}

// segment is a picture and the steps after it.
type segment struct {
	out []byte
	// began is the time of the picture, and body the offset of the first step.
	began time.Duration
	body  int
}

// New returns a recorder whose ring takes about size bytes for steps; pictures of the machine
// take additional memory. With ids, identities are recorded in clear.
func New(size int, ids bool) *Recorder {
	return &Recorder{size: max(size, segments<<7), hide: hider{seed: maphash.MakeSeed(), ids: ids}}
}

// Tell calls Broken, but only once.
func (r *Recorder) Tell(law string) {
	if r.Broken != nil {
		r.telling.Do(func() { r.Broken(law) })
	}
}

// Begin starts the recording of a machine that has made no step yet. Begin replaces the
// recording of the previous machine.
func (r *Recorder) Begin(name string, m *machine.Machine, c machine.Config, at time.Time) *Tape {
	t := &Tape{size: r.size, name: name, config: c, began: at, known: known{Machine: m, Flights: make([]*machine.Flight, c.Workers)}}
	t.watch.workers = make([]watched, c.Workers)
	t.writer.known, t.writer.hide = &t.known, &r.hide
	t.open(0)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tape = t
	return t
}

// Event records the event that the machine is about to handle.
func (t *Tape) Event(e machine.Event, now time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if s := &t.ring[t.current]; len(s.out)-s.body > t.size/segments {
		t.current = (t.current + 1) % segments
		t.open(t.last)
	}
	t.event, t.now = e, now
	t.write(func(w *writer) { w.event(e, now) })
	t.last = now
}

// Actions records the actions of the step. Actions returns the law that they violate, if it is
// the first violation of this machine.
func (t *Tape) Actions(all []machine.Action) *Broken {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.write(func(w *writer) { w.actions(all) })
	t.known.step(t.event, all)
	if t.broken {
		return nil
	}
	b := t.watch.step(t.event, t.now, all)
	t.broken = b != nil
	return b
}

// open begins the current segment with a picture.
func (t *Tape) open(at time.Duration) {
	s := &t.ring[t.current]
	t.used = min(t.used+1, segments)
	s.out = s.out[:0]
	t.write(func(w *writer) { w.paint(at) })
	s.began, s.body = at, len(s.out)
}

// write appends to the current segment.
func (t *Tape) write(what func(w *writer)) {
	s, w := &t.ring[t.current], &t.writer
	w.out = s.out
	what(w)
	s.out, w.out = w.out, nil
}

// lines returns a copy of the recording: the picture of the oldest segment, then the steps of all
// segments, the oldest first.
func (t *Tape) lines() (all []byte) {
	for i := range t.used {
		s := &t.ring[(t.current+segments+1-t.used+i)%segments]
		if i == 0 {
			all = append(all, s.out[:s.body]...)
		}
		all = append(all, s.out[s.body:]...)
	}
	return all
}
