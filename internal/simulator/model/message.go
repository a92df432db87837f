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
	BreaksQuietly // the transaction is broken; the next message notices
	FailsAtCommit
	Sticks
	MeetsContention
	MeetsDown
	UnknownType // there is no handler for it
	// AlwaysContends and AlwaysDown: its own statements always fail its transaction as if other
	// transactions or the store were at fault.
	AlwaysContends
	AlwaysDown
)

var ConductNames = [...]string{"ok", "retryable", "with wait", "too long", "permanent", "park", "discard",
	"duplicate", "unmet", "breaks quietly", "fails at commit", "stuck", "contended", "down", "unknown type",
	"always contended", "always down"}

// DrawTimes draws how often a handler behaves in this way.
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

// Message is a message of a producer. Its copies share it.
type Message struct {
	Number int
	// ID is the identity in the store, made of Source and Identity.
	ID               string
	Source, Identity string
	// Former is the former identity, which other messages may share; "" if there is none.
	Former  string
	Print   semel.Fingerprint
	Conduct Conduct
	// Times is how often the handler still behaves as Conduct says before it succeeds.
	Times int
	// Failed counts the failures of the handler.
	Failed int
	// Intent is the message that a sender sends; Of and OfStep are the message, and its step, that caused it.
	Intent *semel.Message
	Of     *Message
	OfStep string
	// ChosenKey is the idempotency key that the handler chose; "" if it chose none.
	ChosenKey string
	// Clashed: its intents were stored before with other content.
	Clashed bool
	// From is the number of steps that succeed before the handler behaves as Conduct says.
	From int
	// Harmless: the message may be charged with attempts only for failures that look like the fault of others
	// or of the store, again and again.
	Harmless bool
	// Charged counts how often the message was charged with an attempt, in one life.
	Charged int
	// Doubted: the outcome of a call for the message was unknown.
	Doubted bool
	// Edited is the message before a person edited it; nil if it was not edited.
	Edited  *Message
	Refused semel.Reason
	// Foreign: the message is refused because it belongs to another consumer.
	Foreign bool
	Route   uint64
	Size    int
	// Stream and Version are the place of the message in a stream; Version is 0 if it has none. Late: the
	// message is published after all others of its lane.
	Stream  string
	Version int64
	Late    bool
	// Age is the time at which its identity was first published, if the plan removes ended messages.
	Age time.Duration
}

// Name returns the name of the message in histories.
func (m *Message) Name() string {
	if m.Version > 0 {
		return "m" + strconv.Itoa(m.Number) + "=" + m.Stream + strconv.FormatInt(m.Version, 10)
	}
	return "m" + strconv.Itoa(m.Number)
}

// Outside reports whether the store recognises that the message did not cause its error, such as a lock
// that another transaction holds, or a full disk. Such errors end by themselves.
func (m *Message) Outside() bool {
	return m.Number%2 == 0 && (m.Conduct == MeetsContention || m.Conduct == MeetsDown)
}

// LooksInnocent reports whether a single failure of the message looks as if the message had not caused
// it.
func (m *Message) LooksInnocent() bool {
	return m.Harmless || m.Conduct == AlwaysContends || m.Conduct == AlwaysDown
}

// FailsLate reports whether the message always fails as if others or the store were at fault, and only when
// its flight ends: by a queued statement, or a constraint that is deferred to COMMIT.
func (m *Message) FailsLate() bool {
	return m.Times > 0 && (m.Conduct == AlwaysContends || m.Conduct == AlwaysDown) && m.Number%3 > 0
}

// CallsOut changes the conduct of the handler to one that is possible for a handler that only calls: it has no
// transaction that could break or contend with others.
func (m *Message) CallsOut() {
	switch m.Conduct {
	case BreaksQuietly, FailsAtCommit, MeetsContention, MeetsDown:
		m.Conduct = FailsRetryable
	case AlwaysContends, AlwaysDown:
		m.Conduct = FailsForGood
	}
}

// Doubt records that a call for the message has an unknown outcome, which may be charged as an attempt.
func (m *Message) Doubt() { m.Harmless, m.Doubted = false, true }

// Fail counts one failure.
func (m *Message) Fail() {
	m.Times--
	m.Failed++
}

// Kind returns a number that is equal for all copies of a message.
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
	// due is when the delivery is available again after a nack.
	due     time.Duration
	Settled bool
	// Acknowledged: the owner of the lane has acked it (the checker's).
	Acknowledged bool
	out          bool // handed out in this epoch
	returned     bool // nacked in this epoch
	Count        int  // how often it was handed out
	// Of is the delivery that a replay reads again; nil if this is no replay.
	Of *Delivery
}

// Intent is an intent that a transaction has written.
type Intent struct {
	ID      string // the identity in the store of the sender
	Message *semel.Message
	Print   semel.Fingerprint
	// Of and Step are the message, and its step, that caused the intent. Parked: the intent is suppressed.
	Of     *Message
	Step   string
	Parked bool
	Key    string // the key that the handler chose
	// Quiet: a replay without effects wrote the intent.
	Quiet bool
}
