package model

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// Conduct is how a handler treats a message.
type Conduct uint8

const (
	Succeeds Conduct = iota
	FailsRetryable
	FailsWithWait
	AsksTooLong
	FailsForGood
	AsksPark
	AsksDiscard
	SaysDuplicate
	FindsUnmet
	BreaksQuietly // the transaction is broken; who comes after it sees it
	FailsAtCommit
	Sticks
	MeetsContention
	MeetsDown
	UnknownType // there is no handler for it
	// AlwaysContends and alwaysDown: what it does itself always ends its
	// transaction as if others or the store were to blame.
	AlwaysContends
	AlwaysDown
)

var ConductNames = [...]string{"ok", "retryable", "with wait", "too long", "permanent", "park", "discard",
	"duplicate", "unmet", "breaks quietly", "fails at commit", "stuck", "contended", "down", "unknown type",
	"always contended", "always down"}

// DrawTimes draws how often a handler behaves so.
func (k Conduct) DrawTimes(c *chance.Choices) int {
	switch k {
	case Succeeds:
		return 0
	case FailsForGood, AsksPark, AsksDiscard, SaysDuplicate, UnknownType, AlwaysContends, AlwaysDown:
		return Always
	case Sticks, MeetsContention, MeetsDown:
		return c.Between(1, 2)
	default:
		return c.Between(1, 8)
	}
}

// Always is a number of times that no run reaches.
const Always = 1 << 20

// Message is what a producer said; copies share it.
type Message struct {
	Number int
	// ID is what the store knows it by: of the source and the identity.
	ID               string
	Source, Identity string
	// Former is its former identity, which others may have had, too; empty: it has none.
	Former  string
	Print   semel.Fingerprint
	Conduct Conduct
	// Times is how often it still behaves so before it succeeds.
	Times int
	// Failed is how often its handler failed.
	Failed int
	// Intent is what a sender sends, of the message, or step of it, that caused it.
	Intent *semel.Message
	Of     *Message
	OfStep string
	// ChosenKey is the idempotency key that it was given, if it was.
	ChosenKey string
	// Clashed: its intents were there with another content.
	Clashed bool
	// From is how many of its steps are done before it behaves so.
	From int
	// Harmless: the message can be blamed for nothing but what looks like
	// others' or the store's fault again and again.
	Harmless bool
	// Charged is how often it was, in one life.
	Charged int
	// Doubted: what became of a call for it was not known.
	Doubted bool
	// Edited is what it was before a person has edited it; nil: nobody has.
	Edited  *Message
	Refused semel.Reason
	// Foreign: it is refused because it is not the consumer's.
	Foreign bool
	Route   uint64
	Size    int
	// Stream and Version are its place in a stream; 0: it has none. Late: it comes when
	// everything else of its lane has come.
	Stream  string
	Version int64
	Late    bool
	// Age is when its identity was published first, where what has ended is removed.
	Age time.Duration
}

// Name is what histories call the message.
func (m *Message) Name() string {
	if m.Version > 0 {
		return "m" + strconv.Itoa(m.Number) + "=" + m.Stream + strconv.FormatInt(m.Version, 10)
	}
	return "m" + strconv.Itoa(m.Number)
}

// Outside reports whether the store knows that what the message met is not its
// own doing: a lock that another holds, a full disk. It passes.
func (m *Message) Outside() bool {
	return m.Number%2 == 0 && (m.Conduct == MeetsContention || m.Conduct == MeetsDown)
}

// LooksInnocent reports whether its failures are nobody's, as far as one of
// them shows.
func (m *Message) LooksInnocent() bool {
	return m.Harmless || m.Conduct == AlwaysContends || m.Conduct == AlwaysDown
}

// FailsLate reports whether the message always fails as if others or the store
// were to blame, and only when its flight ends: a statement that was queued, or
// a constraint that is deferred to COMMIT.
func (m *Message) FailsLate() bool {
	return m.Times > 0 && (m.Conduct == AlwaysContends || m.Conduct == AlwaysDown) && m.Number%3 > 0
}

// CallsOut lets a message's handler behave as one can that only calls: it has no
// transaction that could break, or meet what others do.
func (m *Message) CallsOut() {
	switch m.Conduct {
	case BreaksQuietly, FailsAtCommit, MeetsContention, MeetsDown:
		m.Conduct = FailsRetryable
	case AlwaysContends, AlwaysDown:
		m.Conduct = FailsForGood
	}
}

// Doubt: the message may be charged with what nobody knows.
func (m *Message) Doubt() { m.Harmless, m.Doubted = false, true }

// Fail counts one failure.
func (m *Message) Fail() {
	m.Times--
	m.Failed++
}

// Kind is a number that a message shares with its copies.
func (m *Message) Kind() (n int) {
	for _, b := range []byte(m.ID) {
		n += int(b)
	}
	return n
}

// Delivery is a place in a lane's log.
type Delivery struct {
	Message  *Message
	Lane     *Lane
	Position int
	Produced time.Duration
	// due is when it can be delivered again after it was handed back.
	due     time.Duration
	Settled bool
	// Acknowledged: who has the lane has settled it: the checker's.
	Acknowledged bool
	out          bool // handed out in this epoch
	returned     bool // handed back in this epoch
	Count        int  // how often it was handed out
	// Of is the place that a replay reads again; nil: none.
	Of *Delivery
}

// Intent is one that a transaction has written.
type Intent struct {
	ID      string // of its key, as the store of the sender knows it
	Message *semel.Message
	Print   semel.Fingerprint
	// Of is the message that causes it, Step the step of that; Parked: it is suppressed.
	Of     *Message
	Step   string
	Parked bool
	Key    string // that was chosen for it
	// Quiet: it is of a replay without effects.
	Quiet bool
}
