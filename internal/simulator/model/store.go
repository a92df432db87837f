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

// Marker is the marker of an identity.
type Marker struct {
	Outcome store.Outcome
	Print   semel.Fingerprint
	At      time.Duration // when the marker was first written
}

// RowKey is the key of an inbox row. The key of a conflict's row includes the fingerprint.
type RowKey struct {
	ID       string
	Conflict bool
	Print    semel.Fingerprint
}

// Compare orders keys, so that a run finds them in the same order each time.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(strings.Compare(k.ID, other.ID), slices.Compare(k.Print.Sum[:], other.Print.Sum[:]))
}

// Mark is a marker in an open transaction.
type Mark struct {
	Entry int
	ID    string
	As    machine.As
	Print semel.Fingerprint
	At    time.Duration
}

// Effect is the effect of a handler.
type Effect struct {
	Entry   int
	Message *Message
	// Step is the step that made the effect, for a message with steps. Part: further steps are left.
	Step string
	Part bool
}

// Transaction is an open transaction.
type Transaction struct {
	Marks   []Mark
	Effects []Effect
	Open    bool
	// Broken: the transaction can only be rolled back. The store reports this only when it is asked.
	Broken bool
	// Quiet: its handler runs in a replay without effects.
	Quiet bool
	// Intents are the intents that a handler wrote.
	Intents []Intent
	// Cut: its connection is lost.
	Cut bool
	// Committing: the process has sent COMMIT.
	Committing bool
	By         holder // nil if it is none of the world's processes
	// Replays: the process of the transaction reads the history again.
	Replays bool
}

// Store is the model of a store.
type Store struct {
	Markers map[string]Marker
	Rows    map[RowKey]*Row
	Inbox   []*Row         // the rows in the order in which they were written
	Lost    map[RowKey]int // copies that commits with an unknown outcome may have counted
	// Parted counts, by identity, the deliveries that a process held and could not settle. A commit may have
	// counted them before they were delivered again.
	Parted map[string]int
	// Effects counts effects by identity, so that a doubled effect shows as two.
	Effects map[string]int
	// StepsDone are the steps that took effect, by identity (the checker's).
	StepsDone map[string][]string
	// Low is the low-water mark: older markers may have been removed. Gone are the removed markers and
	// GoneRows the removed rows (the checker's).
	Low      time.Duration
	Gone     map[string]Removed
	GoneRows map[RowKey]bool
	// Passed has the identities whose marker has passed from one row to another.
	Passed  map[string]bool
	Locks   map[string]*Transaction
	streams map[string]*stream
	places  int // the last place in a line that was assigned
	Waiting []func()
	// Changes counts, by identity, the changes that no replay made (the checker's).
	Changes map[string]int
	// Open are the open transactions.
	Open map[*Transaction]bool
	// Intended maps an intent to the transaction that wrote it, which may have ended.
	Intended map[string]*Transaction
	// Serial is the last transaction that took the consumer's lock.
	Serial *Transaction
	Down   bool
	// Ahead is by how much the store's clock is ahead; negative if it is behind.
	Ahead  time.Duration
	Jumped bool
	// Claiming is called with each row that is claimed. Over is called with each row that is due, and reports
	// whether the row has ended.
	Claiming func(*Row)
	Over     func(*Row) bool
	// Outages counts the outages of the store.
	Outages int
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{Markers: map[string]Marker{}, Rows: map[RowKey]*Row{}, Lost: map[RowKey]int{}, Parted: map[string]int{}, Effects: map[string]int{}, StepsDone: map[string][]string{}, Intended: map[string]*Transaction{}, Gone: map[string]Removed{}, GoneRows: map[RowKey]bool{}, Passed: map[string]bool{}, Changes: map[string]int{}, Open: map[*Transaction]bool{}, Locks: map[string]*Transaction{}, streams: map[string]*stream{}}
}

// Conflicts reports whether two fingerprints of the same version differ.
func Conflicts(a, b semel.Fingerprint) bool {
	return a.Version != 0 && a.Version == b.Version && a.Sum != b.Sum
}

// Judge returns the verdict on a mark of an identity that no transaction has locked.
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

// JudgeIntent returns the verdict on an intent, by the inbox and the intents of the transaction.
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

// Newer is the outcome of markers that a newer release, which shares the store, has written. This release
// does not know what it means.
const Newer store.Outcome = 9

// Outcomes maps how an entry is marked to the outcome in its marker.
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

// Write adds a fresh mark to t and locks its identity.
func (s *Store) Write(t *Transaction, m Mark) {
	t.Marks = append(t.Marks, m)
	s.Locks[m.ID] = t
}

// Opened adds a transaction to the open ones and returns it.
func (s *Store) Opened(t *Transaction) *Transaction {
	s.Open[t] = true
	return t
}

// End closes t and releases its locks. End returns the functions that waited for a lock; the caller runs
// them.
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

// Apply commits the marks of t, except the trimmed ones, its effects, and rows. Effects cannot be trimmed,
// because the store does not know which entry made which effect. rowOf converts a row of the commit.
func (s *Store) Apply(t *Transaction, trim []int, rows []machine.Row, rowOf func(*machine.Row) *Row) {
	for _, m := range t.Marks {
		if !slices.Contains(trim, m.Entry) {
			s.Remember(m.ID, Outcomes[m.As], Marker{Print: m.Print, At: m.At})
			if t.Replays {
				s.Changes[m.ID]-- // changes of a replay are predicted
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
		case rows[i].Repeat: // a message that another process applied has no row
		case there != nil && is.Key.Conflict:
			// Two transactions saw the same conflict, for example because one
			// commit was late. The second is counted on the row, and settled as a conflict.
			there.Repeats++
			s.Parted[is.Key.ID]++
		case there != nil:
			*there = *is
		default:
			s.Put(is)
		}
	}
}

// Remember writes a marker. A marker that is changed keeps its time.
func (s *Store) Remember(id string, o store.Outcome, m Marker) {
	if there, known := s.Markers[id]; known {
		m.At = there.At
	}
	m.Outcome = o
	s.Markers[id] = m
	s.Changes[id]++
}

// Holder returns the transaction that has locked an identity or its former identity, or nil.
func (s *Store) Holder(id, former string) *Transaction {
	if t := s.Locks[id]; t != nil {
		return t
	}
	return s.Locks[former]
}

// Marked returns the marker that has the outcome of a message: its own marker, even if that was removed, or
// else the marker of its former identity.
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
