package model

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// Conduct is the behaviour of the handler for a message.
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
	BreaksQuietly // a statement breaks the transaction; only the next message notices that
	FailsAtCommit
	Sticks
	MeetsContention
	MeetsDown
	UnknownType // the process has no handler for the type of the message
	// AlwaysContends and AlwaysDown: the statements of the message always break the transaction, with an error
	// that looks as if other transactions or the store had caused it.
	AlwaysContends
	AlwaysDown
)

var ConductNames = [...]string{"ok", "retryable", "with wait", "too long", "permanent", "park", "discard",
	"duplicate", "unmet", "breaks quietly", "fails at commit", "stuck", "contended", "down", "unknown type",
	"always contended", "always down"}

// DrawTimes draws how many times a handler behaves in this way.
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

// Always is a number that no run reaches.
const Always = 1 << 20

// Message is a message of a producer. All its copies are the same Message.
type Message struct {
	Number int
	// ID is the key of the identity in the store, made of Source and Identity.
	ID               string
	Source, Identity string
	// Former is the previous identity; empty if there is none. Several messages may have the same previous
	// identity.
	Former  string
	Print   semel.Fingerprint
	Conduct Conduct
	// Times is how many more times the handler behaves as Conduct says before it succeeds.
	Times int
	// Failed is the number of failures of the handler.
	Failed int
	// Intent is the message that a sender sends. Of is the message that wrote the intent, and OfStep the step
	// of that message.
	Intent *semel.Message
	Of     *Message
	OfStep string
	// ChosenKey is the idempotency key that the handler chose; empty if it chose none.
	ChosenKey string
	// Clashed is true if its intents were stored before with other content.
	Clashed bool
	// From is the number of steps that succeed before the handler behaves as Conduct says.
	From int
	// Harmless is true if the message must not be charged with an attempt, except after repeated failures
	// whose cause looks like another transaction or the store.
	Harmless bool
	// Charged is how many times the message was charged with an attempt, during the life of one process.
	Charged int
	// Doubted is true if the outcome of a call for the message was unknown.
	Doubted bool
	// Edited is the message before a person edited it; nil if it was not edited.
	Edited  *Message
	Refused semel.Reason
	// Foreign is true if the message is refused because it belongs to another consumer.
	Foreign bool
	Route   uint64
	Size    int
	// Stream and Version are the place of the message in a stream; Version is 0 if it has no place. Late is
	// true if the message is published after all others of its lane.
	Stream  string
	Version int64
	Late    bool
	// Age is when the identity was first published, if the plan removes ended messages.
	Age time.Duration
}

// Name returns the name of the message in histories.
func (m *Message) Name() string {
	if m.Version > 0 {
		return "m" + strconv.Itoa(m.Number) + "=" + m.Stream + strconv.FormatInt(m.Version, 10)
	}
	return "m" + strconv.Itoa(m.Number)
}

// Outside reports whether the store recognises that the message did not cause its error. Examples are a lock
// of another transaction and a full disk. Such errors pass.
func (m *Message) Outside() bool {
	return m.Number%2 == 0 && (m.Conduct == MeetsContention || m.Conduct == MeetsDown)
}

// LooksInnocent reports whether a single failure of the message looks as if the message had not caused the
// failure.
func (m *Message) LooksInnocent() bool {
	return m.Harmless || m.Conduct == AlwaysContends || m.Conduct == AlwaysDown
}

// FailsLate reports whether the message always fails at the end of its batch, with an error that looks as if
// another transaction or the store had caused it. The cause is a queued statement, or a constraint that is
// deferred to COMMIT.
func (m *Message) FailsLate() bool {
	return m.Times > 0 && (m.Conduct == AlwaysContends || m.Conduct == AlwaysDown) && m.Number%3 > 0
}

// CallsOut changes the conduct to one that is possible for a handler that only makes a call. Such a handler
// has no transaction that could break or wait for locks.
func (m *Message) CallsOut() {
	switch m.Conduct {
	case BreaksQuietly, FailsAtCommit, MeetsContention, MeetsDown:
		m.Conduct = FailsRetryable
	case AlwaysContends, AlwaysDown:
		m.Conduct = FailsForGood
	}
}

// Doubt records that a call for the message has an unknown outcome. That may be charged as an attempt.
func (m *Message) Doubt() { m.Harmless, m.Doubted = false, true }

// Fail counts one failure.
func (m *Message) Fail() {
	m.Times--
	m.Failed++
}

// Kind returns a number that is the same for all copies of a message.
func (m *Message) Kind() (n int) {
	for _, b := range []byte(m.ID) {
		n += int(b)
	}
	return n
}

// Delivery is an entry in the log of a lane.
type Delivery struct {
	Message  *Message
	Lane     *Lane
	Position int
	Produced time.Duration
	// due is the time from which the delivery is available again after a nack.
	due     time.Duration
	Settled bool
	// Acknowledged is true if the owner of the lane has acked the delivery (for the checker).
	Acknowledged bool
	out          bool // delivered in this epoch
	returned     bool // nacked in this epoch
	Count        int  // how many times it was delivered
	// Of is the original delivery if a replay reads it again; otherwise nil.
	Of *Delivery
}

// Intent is an intent that a transaction has written.
type Intent struct {
	ID      string // the key of the identity in the sender's store
	Message *semel.Message
	Print   semel.Fingerprint
	// Of and Step are the message that wrote the intent, and its step. Parked is true if the intent is
	// suppressed.
	Of     *Message
	Step   string
	Parked bool
	Key    string // the idempotency key that the handler chose
	// Quiet is true if a replay without effects wrote the intent.
	Quiet bool
}
