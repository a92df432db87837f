package simulator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// marker is what the store remembers of an identity.
type marker struct {
	outcome store.Outcome
	print   semel.Fingerprint
	at      time.Duration // of the mark that wrote it first
}

// rowKey is the key of an inbox row; a conflict's row has the print in it.
type rowKey struct {
	id       string
	conflict bool
	print    semel.Fingerprint
}

// compare orders keys, so that a seed always finds the same one first.
func (k rowKey) compare(other rowKey) int {
	return cmp.Or(strings.Compare(k.id, other.id), slices.Compare(k.print.Sum[:], other.print.Sum[:]))
}

// mark is a marker that a transaction has written.
type mark struct {
	entry int
	id    string
	as    machine.As
	print semel.Fingerprint
	at    time.Duration
}

// effect is what a handler wrote. The log of effects has no key: it is the
// checker's, and shows a doubled effect as two.
type effect struct {
	entry   int
	message *message
	// step is that of a message with steps; part: another is left.
	step string
	part bool
}

// transaction is an open transaction.
type transaction struct {
	marks   []mark
	effects []effect
	open    bool
	// broken: it can only be rolled back, though the store says so only when
	// asked. dirty: a failed handler has left something in it.
	broken, dirty bool
	// quiet: what its handler writes is of a replay without effects.
	quiet bool
	// intents are those that a handler wrote.
	intents []intent
	// cut: its connection is gone.
	cut bool
	// committing: the process has said COMMIT.
	committing bool
	by         *process // nil: none of the world's processes
}

// simStore is the model of a store.
type simStore struct {
	markers map[string]marker
	rows    map[rowKey]*row
	inbox   []*row         // the same, in the order in which they were written
	lost    map[rowKey]int // copies that commits of unknown outcome may have counted, or not
	// parted counts deliveries of an identity that somebody had in hand and could
	// not settle: a commit may have counted them, and they came again.
	parted  map[string]int
	effects map[string]int
	// stepsDone are the steps that took effect, by identity: the checker's.
	stepsDone map[string][]string
	// low is before when markers may have been removed; gone are those that were, and
	// goneRows the rows, which only the checker knows.
	low      time.Duration
	gone     map[string]removed
	goneRows map[rowKey]bool
	// passed are the identities whose marker has passed from one row to another.
	passed  map[string]bool
	log     []*message
	locks   map[string]*transaction
	streams map[string]*stream
	places  int // in lines, that were given
	waiting []func()
	// changes counts, by identity, what others than a replay have changed: the checker's.
	changes map[string]int
	// open are the transactions that are.
	open map[*transaction]bool
	// intended are the transactions that wrote an intent, also those that have ended.
	intended map[string]*transaction
	// serial is the last transaction that took the consumer's lock.
	serial *transaction
	down   bool
	// ahead is by how much its clock is wrong.
	ahead  time.Duration
	jumped bool
	// claiming is called of each row that is claimed, over of each that is due; it reports
	// whether the row is over.
	claiming func(*row)
	over     func(*row) bool
	// outages counts how often it went away.
	outages int
}

func newStore() *simStore {
	return &simStore{markers: map[string]marker{}, rows: map[rowKey]*row{}, lost: map[rowKey]int{}, parted: map[string]int{}, effects: map[string]int{}, stepsDone: map[string][]string{}, intended: map[string]*transaction{}, gone: map[string]removed{}, goneRows: map[rowKey]bool{}, passed: map[string]bool{}, changes: map[string]int{}, open: map[*transaction]bool{}, locks: map[string]*transaction{}, streams: map[string]*stream{}}
}

// conflicts reports whether two prints of one rule differ.
func conflicts(a, b semel.Fingerprint) bool {
	return a.Version != 0 && a.Version == b.Version && a.Sum != b.Sum
}

// judge answers a mark of an identity that nobody has locked.
func (s *simStore) judge(id string, print semel.Fingerprint) store.Verdict {
	m, there := s.markers[id]
	switch {
	case !there:
		return store.Verdict{Kind: store.Fresh}
	case m.outcome == newer:
		return store.Verdict{Kind: store.Newer, Was: newer}
	case !conflicts(m.print, print):
		return store.Verdict{Kind: store.Seen, Was: m.outcome}
	case s.rows[rowKey{id, true, print}] != nil:
		return store.Verdict{Kind: store.Conflict, Known: true}
	default:
		return store.Verdict{Kind: store.Conflict}
	}
}

// write puts a fresh mark into t.
func (s *simStore) write(t *transaction, m mark) {
	t.marks = append(t.marks, m)
	s.locks[m.id] = t
}

// opened keeps a transaction among those that are open.
func (s *simStore) opened(t *transaction) *transaction {
	s.open[t] = true
	return t
}

// end closes t and lets those who wait for its locks look again.
func (s *simStore) end(t *transaction) []func() {
	t.open = false
	delete(s.open, t)
	for _, m := range t.marks {
		if s.locks[m.id] == t {
			delete(s.locks, m.id)
		}
	}
	waiting := s.waiting
	s.waiting = nil
	return waiting
}

// outcomes is what a marker says, by what was marked.
var outcomes = [...]store.Outcome{
	machine.AsApplied:      store.Applied,
	machine.AsDuplicate:    store.Applied,
	machine.AsParked:       store.Parked,
	machine.AsDiscarded:    store.Discarded,
	machine.AsDeadLettered: store.DeadLettered,
	machine.AsReceived:     store.Waiting,
	machine.AsWaiting:      store.Waiting,
	machine.AsBlocked:      store.Waiting,
	machine.AsOverdue:      store.Parked,
	machine.AsStepped:      store.Waiting,
}

// apply makes what t wrote, but for the trimmed marks, durable. An effect
// cannot be trimmed: it is the handler's, and the store does not know whose. rowOf
// makes the row that one of a commit's would be.
func (s *simStore) apply(t *transaction, trim []int, rows []machine.Row, rowOf func(*machine.Row) *row) {
	for _, m := range t.marks {
		if !slices.Contains(trim, m.entry) {
			s.remember(m.id, outcomes[m.as], marker{print: m.print, at: m.at})
			if t.by != nil && t.by.reads() {
				s.changes[m.id]-- // those of a replay are foreseen
			}
		}
	}
	for _, e := range t.effects {
		if e.part {
			continue
		}
		s.effects[e.message.id]++
		s.log = append(s.log, e.message)
	}
	for i := range rows {
		is := rowOf(&rows[i])
		switch there := s.rows[is.key]; {
		case there != nil && rows[i].Repeat:
			there.repeats++
		case rows[i].Repeat: // what another applied has no row
		case there != nil && is.key.conflict:
			// Two transactions saw the same conflict, as one whose commit was
			// late: the second is counted on the row, and settled as a conflict.
			there.repeats++
			s.parted[is.key.id]++
		case there != nil:
			*there = *is
		default:
			s.put(is)
		}
	}
}
