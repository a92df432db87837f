package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Marker is what the store remembers of an identity.
type Marker struct {
	Outcome store.Outcome
	Print   semel.Fingerprint
	At      time.Duration // of the mark that wrote it first
}

// RowKey is the key of an inbox row; a conflict's row has the print in it.
type RowKey struct {
	ID       string
	Conflict bool
	Print    semel.Fingerprint
}

// Compare orders keys, so that a seed always finds the same one first.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(strings.Compare(k.ID, other.ID), slices.Compare(k.Print.Sum[:], other.Print.Sum[:]))
}

// Mark is a marker that a transaction has written.
type Mark struct {
	Entry int
	ID    string
	As    machine.As
	Print semel.Fingerprint
	At    time.Duration
}

// Effect is what a handler wrote.
type Effect struct {
	Entry   int
	Message *Message
	// Step is that of a message with steps; Part: another is left.
	Step string
	Part bool
}

// Transaction is an open transaction.
type Transaction struct {
	Marks   []Mark
	Effects []Effect
	Open    bool
	// Broken: it can only be rolled back, though the store says so only when asked.
	Broken bool
	// Quiet: what its handler writes is of a replay without effects.
	Quiet bool
	// Intents are those that a handler wrote.
	Intents []Intent
	// Cut: its connection is gone.
	Cut bool
	// Committing: the process has said COMMIT.
	Committing bool
	By         holder // nil: none of the world's processes
	// Replays: it is of a process that reads the history again.
	Replays bool
}

// Store is the model of a store.
type Store struct {
	Markers map[string]Marker
	Rows    map[RowKey]*Row
	Inbox   []*Row         // the same, in the order in which they were written
	Lost    map[RowKey]int // copies that commits of unknown outcome may have counted, or not
	// Parted counts deliveries of an identity that somebody had in hand and could
	// not settle: a commit may have counted them, and they came again.
	Parted map[string]int
	// Effects counts those of an identity, so that a doubled effect shows as two.
	Effects map[string]int
	// StepsDone are the steps that took effect, by identity: the checker's.
	StepsDone map[string][]string
	// Low is before when markers may have been removed; Gone are those that were, and
	// GoneRows the rows, which only the checker knows.
	Low      time.Duration
	Gone     map[string]Removed
	GoneRows map[RowKey]bool
	// Passed are the identities whose marker has passed from one row to another.
	Passed  map[string]bool
	Locks   map[string]*Transaction
	streams map[string]*stream
	places  int // in lines, that were given
	Waiting []func()
	// Changes counts, by identity, what others than a replay have changed: the checker's.
	Changes map[string]int
	// Open are the transactions that are.
	Open map[*Transaction]bool
	// Intended are the transactions that wrote an intent, also those that have ended.
	Intended map[string]*Transaction
	// Serial is the last transaction that took the consumer's lock.
	Serial *Transaction
	Down   bool
	// Ahead is by how much its clock is wrong.
	Ahead  time.Duration
	Jumped bool
	// Claiming is called of each row that is claimed, Over of each that is due; it reports
	// whether the row is over.
	Claiming func(*Row)
	Over     func(*Row) bool
	// Outages counts how often it went away.
	Outages int
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{Markers: map[string]Marker{}, Rows: map[RowKey]*Row{}, Lost: map[RowKey]int{}, Parted: map[string]int{}, Effects: map[string]int{}, StepsDone: map[string][]string{}, Intended: map[string]*Transaction{}, Gone: map[string]Removed{}, GoneRows: map[RowKey]bool{}, Passed: map[string]bool{}, Changes: map[string]int{}, Open: map[*Transaction]bool{}, Locks: map[string]*Transaction{}, streams: map[string]*stream{}}
}

// Conflicts reports whether two prints of one rule differ.
func Conflicts(a, b semel.Fingerprint) bool {
	return a.Version != 0 && a.Version == b.Version && a.Sum != b.Sum
}

// Judge answers a mark of an identity that nobody has locked.
func (s *Store) Judge(id string, print semel.Fingerprint) store.Verdict {
	m, there := s.Markers[id]
	switch {
	case !there:
		return store.Verdict{Kind: store.Fresh}
	case m.Outcome == Newer:
		return store.Verdict{Kind: store.Newer, Was: Newer}
	case !Conflicts(m.Print, print):
		return store.Verdict{Kind: store.Seen, Was: m.Outcome}
	case s.Rows[RowKey{id, true, print}] != nil:
		return store.Verdict{Kind: store.Conflict, Known: true}
	default:
		return store.Verdict{Kind: store.Conflict}
	}
}

// JudgeIntent says whether an intent is there, in the inbox or in the transaction.
func (s *Store) JudgeIntent(t *Transaction, n Intent) store.Verdict {
	for _, there := range t.Intents {
		if there.ID != n.ID {
			continue
		}
		if Conflicts(there.Print, n.Print) {
			return store.Verdict{Kind: store.Conflict}
		}
		return store.Verdict{Kind: store.Seen, Was: store.Waiting}
	}
	return s.Judge(n.ID, n.Print)
}

// Newer is an outcome that only a newer release knows, which shares the store:
// for some time nobody else can tell what became of the identity.
const Newer store.Outcome = 9

// Outcomes is what a marker says, by what was marked.
var Outcomes = [...]store.Outcome{
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

// Write puts a fresh mark into t.
func (s *Store) Write(t *Transaction, m Mark) {
	t.Marks = append(t.Marks, m)
	s.Locks[m.ID] = t
}

// Opened keeps a transaction among those that are open.
func (s *Store) Opened(t *Transaction) *Transaction {
	s.Open[t] = true
	return t
}

// End closes t and lets those who wait for its locks look again.
func (s *Store) End(t *Transaction) []func() {
	t.Open = false
	delete(s.Open, t)
	for _, m := range t.Marks {
		if s.Locks[m.ID] == t {
			delete(s.Locks, m.ID)
		}
	}
	waiting := s.Waiting
	s.Waiting = nil
	return waiting
}

// Apply makes what t wrote, but for the trimmed marks, durable. An effect
// cannot be trimmed: it is the handler's, and the store does not know whose. rowOf
// makes the row that one of a commit's would be.
func (s *Store) Apply(t *Transaction, trim []int, rows []machine.Row, rowOf func(*machine.Row) *Row) {
	for _, m := range t.Marks {
		if !slices.Contains(trim, m.Entry) {
			s.Remember(m.ID, Outcomes[m.As], Marker{Print: m.Print, At: m.At})
			if t.Replays {
				s.Changes[m.ID]-- // those of a replay are foreseen
			}
		}
	}
	for _, e := range t.Effects {
		if e.Part {
			continue
		}
		s.Effects[e.Message.ID]++
	}
	for i := range rows {
		is := rowOf(&rows[i])
		switch there := s.Rows[is.Key]; {
		case there != nil && rows[i].Repeat:
			there.Repeats++
		case rows[i].Repeat: // what another applied has no row
		case there != nil && is.Key.Conflict:
			// Two transactions saw the same conflict, as one whose commit was
			// late: the second is counted on the row, and settled as a conflict.
			there.Repeats++
			s.Parted[is.Key.ID]++
		case there != nil:
			*there = *is
		default:
			s.Put(is)
		}
	}
}

// Remember writes a marker. One that is changed keeps its age.
func (s *Store) Remember(id string, o store.Outcome, m Marker) {
	if there, known := s.Markers[id]; known {
		m.At = there.At
	}
	m.Outcome = o
	s.Markers[id] = m
	s.Changes[id]++
}

// Holder is who has locked an identity or its former one; nil if nobody.
func (s *Store) Holder(id, former string) *Transaction {
	if t := s.Locks[id]; t != nil {
		return t
	}
	return s.Locks[former]
}

// Marked is the marker that says what became of a message: its own, also when it was removed
// since, or else the one under its former identity.
func (s *Store) Marked(m *Message) (Marker, bool) {
	own, there := s.Markers[m.ID]
	if was := s.Gone[m.ID]; !there && was.Times > 0 {
		return was.Marker, true
	}
	if there || m.Former == "" {
		return own, there
	}
	former, there := s.Markers[m.Former]
	return former, there
}
