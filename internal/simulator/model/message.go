package model

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// Conduct says how the handler behaves for a message.
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

// DrawTimes draws how many times a handler behaves as the conduct k says.
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

// Always is a number of attempts that no run reaches.
const Always = 1 << 20

// Message is a message of a producer. All copies of a message are the same Message.
type Message struct {
	Number int
	// ID is the key of the identity in the store, made of Source and Identity.
	ID               string
	Source, Identity string
	// Former is the previous identity, or "" if the message has none. Several messages may have the same previous
	// identity.
	Former  string
	Print   semel.Fingerprint
	Conduct Conduct
	// Times is how many more times the handler behaves as Conduct says before it succeeds.
	Times int
	// Failed is the number of failures of the handler.
	Failed int
	// Intent is the message that a sender sends. Of is the message whose handler wrote the intent, and OfStep is the
	// step of that message.
	Intent *semel.Message
	Of     *Message
	OfStep string
	// ChosenKey is the idempotency key that the handler chose, or "" if the handler chose none.
	ChosenKey string
	// Clashed is true if intents of the message were already stored with other content.
	Clashed bool
	// From is the number of steps that succeed before the step in which the handler behaves as Conduct says.
	From int
	// Harmless is true if failures must not count as attempts of the message, except after repeated failures that look
	// as if another transaction or the store had caused them.
	Harmless bool
	// Charged is how many failures counted as an attempt of the message, during the life of one process.
	Charged int
	// Doubted is true if the outcome of a call for the message was unknown.
	Doubted bool
	// Edited is the message before a person edited it, or nil if the message was not edited.
	Edited  *Message
	Refused semel.Reason
	// Foreign is true if the filter excludes the message because it is for another consumer.
	Foreign bool
	Route   uint64
	Size    int
	// Stream and Version are the position of the message in a stream; Version is 0 if the message has no version. Late
	// is true if the message is published after all other messages of its lane.
	Stream  string
	Version int64
	Late    bool
	// Age is the time when the identity was first published, if the plan removes the markers of ended messages.
	Age time.Duration
}

// Name returns the name of the message in the text of a run's history.
func (m *Message) Name() string {
	if m.Version > 0 {
		return "m" + strconv.Itoa(m.Number) + "=" + m.Stream + strconv.FormatInt(m.Version, 10)
	}
	return "m" + strconv.Itoa(m.Number)
}

// Outside reports whether the store recognises that the message did not cause its error. Examples are a lock of another
// transaction and a full disk, which are temporary.
func (m *Message) Outside() bool {
	return m.Number%2 == 0 && (m.Conduct == MeetsContention || m.Conduct == MeetsDown)
}

// LooksInnocent reports whether a single failure of the message looks as if the message had not caused it.
func (m *Message) LooksInnocent() bool {
	return m.Harmless || m.Conduct == AlwaysContends || m.Conduct == AlwaysDown
}

// FailsLate reports whether the message always fails at the end of its batch, with an error that looks as if another
// transaction or the store had caused it. A failure at the end of the batch is caused by a queued statement, or by a
// constraint that is deferred to COMMIT.
func (m *Message) FailsLate() bool {
	return m.Times > 0 && (m.Conduct == AlwaysContends || m.Conduct == AlwaysDown) && m.Number%3 > 0
}

// CallsOut changes the conduct to one that is possible for a handler that only makes a call. A handler that only makes
// a call has no transaction that could break or wait for locks.
func (m *Message) CallsOut() {
	switch m.Conduct {
	case BreaksQuietly, FailsAtCommit, MeetsContention, MeetsDown:
		m.Conduct = FailsRetryable
	case AlwaysContends, AlwaysDown:
		m.Conduct = FailsForGood
	}
}

// Doubt records that a call for the message has an unknown outcome, which may count as an attempt.
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

// Delivery is an entry in the log of a lane.
type Delivery struct {
	Message  *Message
	Lane     *Lane
	Position int
	Produced time.Duration
	// availableAt is the time from which the delivery is available again after a nack.
	availableAt time.Duration
	Settled     bool
	// Acknowledged is true if the process that has the lane has acked the delivery (for the checker).
	Acknowledged bool
	out          bool // delivered in this epoch
	returned     bool // nacked in this epoch
	Count        int  // how many times it was delivered
	// Of is the original delivery if a replay reads that delivery again, or nil.
	Of *Delivery
}

// Intent is an intent that a transaction has written.
type Intent struct {
	ID      string // the key of the identity in the sender's store
	Message *semel.Message
	Print   semel.Fingerprint
	// Of and Step are the message whose handler wrote the intent, and its step. Parked is true if the intent is
	// suppressed.
	Of     *Message
	Step   string
	Parked bool
	Key    string // the idempotency key that the handler chose
	// Quiet is true if a replay without effects wrote the intent.
	Quiet bool
}
