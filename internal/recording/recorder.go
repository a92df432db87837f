package recording

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// Recorder contains the recording of the machine that began last.
type Recorder struct {
	// Broken, if set, is called with the first law that a machine violates; see Tell.
	Broken func(law string)

	size    int
	hide    hider
	telling sync.Once

	mutex sync.Mutex
	tape  *Tape // nil before the first Begin; guarded by mutex
}

// segments is the number of segments in the ring. With four segments, most of the recording remains when one segment is
// dropped.
const segments = 4

// Tape is the recording of one state machine (machine.Machine). The machine's loop calls Event and Actions.
type Tape struct {
	size  int
	began time.Time
	name  string

	// mutex guards the fields after it, because another goroutine may write the recording to a file during a step.
	mutex   sync.Mutex
	config  machine.Config
	ring    [segments]segment
	current int // the index of the current segment
	used    int // the number of segments in use
	state   externalState
	watch   watch
	event   machine.Event // the event of the current step
	now     time.Duration
	last    time.Duration // the time of the previous step
	writer  writer
	broken  bool // a violation was reported
}

// segment contains a snapshot of the machine's state (picture) and the steps after the snapshot.
type segment struct {
	out []byte
	// snapshotTime is the time of the snapshot. stepsOffset is the offset of the first step.
	snapshotTime time.Duration
	stepsOffset  int
}

// New returns a recorder whose ring uses about size bytes for steps. Snapshots of the machine's state need additional
// memory. If ids is set, identities are recorded unchanged.
func New(size int, ids bool) *Recorder {
	return &Recorder{size: max(size, segments<<7), hide: hider{seed: maphash.MakeSeed(), ids: ids}}
}

// The first call of Tell calls Broken; later calls have no effect.
func (r *Recorder) Tell(law string) {
	if r.Broken != nil {
		r.telling.Do(func() { r.Broken(law) })
	}
}

// Begin starts the recording of a machine that has made no step yet. The new recording replaces the recording
// of the previous machine.
func (r *Recorder) Begin(name string, m *machine.Machine, c machine.Config, at time.Time) *Tape {
	t := &Tape{size: r.size, name: name, config: c, began: at, state: externalState{Machine: m, Flights: make([]*machine.Flight, c.Workers)}}
	t.watch.workers = make([]watched, c.Workers)
	t.writer.state, t.writer.hide = &t.state, &r.hide
	t.beginSegment(0)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tape = t
	return t
}

// Event records the event that the machine will handle next.
func (t *Tape) Event(e machine.Event, now time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if s := &t.ring[t.current]; len(s.out)-s.stepsOffset > t.size/segments {
		t.current = (t.current + 1) % segments
		t.beginSegment(t.last)
	}
	t.event, t.now = e, now
	t.appendLines(func(w *writer) { w.writeEvent(e, now) })
	t.last = now
}

// Actions records the actions of the step. If the step is the first step of the machine that violates a law, Actions
// returns the violation.
func (t *Tape) Actions(all []machine.Action) *Broken {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.appendLines(func(w *writer) { w.writeActions(all) })
	t.state.step(t.event, all)
	if t.broken {
		return nil
	}
	b := t.watch.step(t.event, t.now, all)
	t.broken = b != nil
	return b
}

// beginSegment begins the current segment with a snapshot of the machine's state.
func (t *Tape) beginSegment(at time.Duration) {
	s := &t.ring[t.current]
	t.used = min(t.used+1, segments)
	s.out = s.out[:0]
	t.appendLines(func(w *writer) { w.writeSnapshot(at) })
	s.snapshotTime, s.stepsOffset = at, len(s.out)
}

// appendLines appends lines to the current segment.
func (t *Tape) appendLines(what func(w *writer)) {
	s, w := &t.ring[t.current], &t.writer
	w.out = s.out
	what(w)
	s.out, w.out = w.out, nil
}

// lines returns a copy of the recording: the snapshot of the oldest segment, and the steps of all segments, the oldest
// first.
func (t *Tape) lines() (all []byte) {
	for i := range t.used {
		s := &t.ring[(t.current+segments+1-t.used+i)%segments]
		if i == 0 {
			all = append(all, s.out[:s.stepsOffset]...)
		}
		all = append(all, s.out[s.stepsOffset:]...)
	}
	return all
}
