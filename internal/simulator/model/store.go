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
	At      time.Duration // the time of the first write
}

// RowKey is the key of an inbox row. The key of a conflict's row includes the fingerprint.
type RowKey struct {
	ID       string
	Conflict bool
	Print    semel.Fingerprint
}

// Compare defines an order of keys, so that a run always processes keys in the same order.
func (k RowKey) Compare(other RowKey) int {
	return cmp.Or(strings.Compare(k.ID, other.ID), slices.Compare(k.Print.Sum[:], other.Print.Sum[:]))
}

// Mark is a marker that an open transaction has written.
type Mark struct {
	Entry int
	ID    string
	As    machine.As
	Print semel.Fingerprint
	At    time.Duration
}

// Effect is the effect of a handler that an open transaction has written.
type Effect struct {
	Entry   int
	Message *Message
	// Step is the step of the message that made the effect, or "" for a message without steps. Part is true if the
	// message has further steps.
	Step string
	Part bool
}

// Transaction is an open transaction.
type Transaction struct {
	Marks   []Mark
	Effects []Effect
	Open    bool
	// Broken is true if the transaction can only be rolled back. The store reports a broken transaction only when it is
	// asked.
	Broken bool
	// Quiet is true if the handler runs in a replay without effects.
	Quiet bool
	// Intents has the intents that the handlers wrote.
	Intents []Intent
	// Cut is true if the connection of the transaction is lost.
	Cut bool
	// Committing is true after the process has sent COMMIT.
	Committing bool
	By         holder // nil if the transaction belongs to no simulated process
	// Replays is true if the process of the transaction runs a replay.
	Replays bool
}

// Store is the model of a store.
type Store struct {
	Markers map[string]Marker
	Rows    map[RowKey]*Row
	Inbox   []*Row         // rows in the order in which they were written
	Lost    map[RowKey]int // copies that may have been counted by commits with an unknown outcome
	// Parted has, by identity, the number of deliveries that a process had and could not ack. Commits may have counted
	// such deliveries before they were delivered again.
	Parted map[string]int
	// Effects has the number of effects by identity, so that the checker finds an effect that happened twice.
	Effects map[string]int
	// StepsDone has the steps that took effect, by identity (for the checker).
	StepsDone map[string][]string
	// Low is a time: markers from before that time may have been removed. For the checker, Gone has the removed markers
	// and GoneRows has the removed rows.
	Low      time.Duration
	Gone     map[string]Removed
	GoneRows map[RowKey]bool
	// Passed has the identities whose marker first belonged to one row and then to another row.
	Passed  map[string]bool
	Locks   map[string]*Transaction
	streams map[string]*stream
	places  int // the last assigned position in a queue
	Waiting []func()
	// Changes has the number of changes by identity, except changes by replays (for the checker).
	Changes map[string]int
	// Open has the open transactions.
	Open map[*Transaction]bool
	// Intended maps an intent to the transaction that wrote the intent, even if that transaction has ended.
	Intended map[string]*Transaction
	// Serial is the last transaction that took the consumer's lock.
	Serial *Transaction
	Down   bool
	// Ahead is how much the store's clock is ahead, or negative if the clock is behind.
	Ahead  time.Duration
	Jumped bool
	// Claiming is called with each row that is claimed. Over is called with each row before it is claimed, and
	// reports whether the row has ended.
	Claiming func(*Row)
	Over     func(*Row) bool
	// Outages counts the outages of the store.
	Outages int
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{Markers: map[string]Marker{}, Rows: map[RowKey]*Row{}, Lost: map[RowKey]int{}, Parted: map[string]int{}, Effects: map[string]int{}, StepsDone: map[string][]string{}, Intended: map[string]*Transaction{}, Gone: map[string]Removed{}, GoneRows: map[RowKey]bool{}, Passed: map[string]bool{}, Changes: map[string]int{}, Open: map[*Transaction]bool{}, Locks: map[string]*Transaction{}, streams: map[string]*stream{}}
}

// Conflicts reports whether two fingerprints have the same version and differ.
func Conflicts(a, b semel.Fingerprint) bool {
	return a.Version != 0 && a.Version == b.Version && a.Sum != b.Sum
}

// Judge returns the store's answer (new, duplicate, conflict) when a marker for an identity is written. The caller has
// checked that no transaction has locked the identity.
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

// JudgeIntent returns the store's answer (new, duplicate, conflict) for an intent, from the inbox and from the intents
// of the transaction.
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

// Newer is the outcome in markers of a newer release that shares the store. The simulated release does not know the
// meaning of the outcome Newer.
const Newer store.Outcome = 9

// Outcomes maps the outcome of an entry to the outcome in its marker.
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

// Write adds a new marker to t and locks the identity.
func (s *Store) Write(t *Transaction, m Mark) {
	t.Marks = append(t.Marks, m)
	s.Locks[m.ID] = t
}

// Opened adds a transaction to the open transactions, and returns it.
func (s *Store) Opened(t *Transaction) *Transaction {
	s.Open[t] = true
	return t
}

// End closes t and releases its locks. End returns the functions that waited for the locks; the caller must
// run them.
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

// Apply commits t: its markers except those in trim, its effects, and the rows. Effects cannot be left out, because the
// store does not know which entry made which effect. The function rowOf converts a row of the commit.
func (s *Store) Apply(t *Transaction, trim []int, rows []machine.Row, rowOf func(*machine.Row) *Row) {
	for _, m := range t.Marks {
		if !slices.Contains(trim, m.Entry) {
			s.Remember(m.ID, Outcomes[m.As], Marker{Print: m.Print, At: m.At})
			if t.Replays {
				s.Changes[m.ID]-- // the changes of a replay are known in advance
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
			// Two transactions saw the same conflict, for example because one commit was late. The second message is
			// counted on the row, and acked as a conflict.
			there.Repeats++
			s.Parted[is.Key.ID]++
		case there != nil:
			*there = *is
		default:
			s.Put(is)
		}
	}
}

// Remember writes a marker. If the marker exists already, Remember does not change its time.
func (s *Store) Remember(id string, o store.Outcome, m Marker) {
	if there, known := s.Markers[id]; known {
		m.At = there.At
	}
	m.Outcome = o
	s.Markers[id] = m
	s.Changes[id]++
}

// Holder returns the transaction that has locked an identity or its previous identity, or nil if neither is locked.
func (s *Store) Holder(id, former string) *Transaction {
	if t := s.Locks[id]; t != nil {
		return t
	}
	return s.Locks[former]
}

// Marked returns the marker with the outcome of a message: its own marker, even if that marker was removed, or, if the
// message never had a marker, the marker of its previous identity.
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
