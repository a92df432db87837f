package contract

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/reading"
)

// String says how the delivery ended.
func (e End) String() string {
	return enum.Name([]string{
		EndUnknown: "not ended", EndApplied: "applied", EndDuplicate: "duplicate", EndConflict: "conflict", EndParked: "parked",
		EndDeadLettered: "dead_lettered", EndDiscarded: "discarded", EndSkipped: "skipped",
		EndReceived: "received", EndWaiting: "waiting", EndStepped: "stepped",
	}, e, "End")
}

// Lane is an ordered stream of deliveries: a partition, a queue, a file.
type Lane struct {
	ID string
	// Epoch is new with every Given; what carries a stale one is dropped.
	Epoch uint64
}

// Delivery is one arrival of a message.
type Delivery struct {
	Message *semel.Message
	Lane    Lane
	// Before is how often the broker says it delivered the message before;
	// Unknown where it does not say.
	Before int
	// Refused, when not empty, says why the source could not read the
	// delivery as a message. It is parked with the raw bytes in Message.Body
	// and never reaches a handler.
	Refused semel.Reason
	// Detail, with Refused, says to people what is wrong. It carries nothing
	// of the payload.
	Detail string
	// Handle is the source's own; the engine hands it back with Settle.
	Handle any
	// Undecoded, when not nil, makes Message, Refused and Detail of what
	// Message.Body has now. See Decode. Semel's own sources set it; in any
	// other it stays nil, and Message is as it will be.
	Undecoded reading.Decoder
}

// Decode does what a source left to be done by whoever reads the delivery: the
// engine calls it in one of several goroutines that share the work. Who looks at
// Message, Refused or Detail before, such as a source around another one, calls
// it with nil first; a second call does nothing.
func (d *Delivery) Decode(room *reading.Room) {
	by := d.Undecoded
	if by == nil {
		return
	}
	if room == nil {
		room = reading.Borrow()
		defer room.Return()
	}
	d.Undecoded = nil
	d.Refused, d.Detail = by.Decode(room, d.Message)
}

// Unknown is the Before of a broker that does not count deliveries.
const Unknown = -1

// Bound limits what one Fetch returns. A source returns at least one delivery
// if it has any, however large.
type Bound struct {
	Messages int
	Bytes    int64
}

// End says how a delivery ended.
type End uint8

// The endings, as they are counted.
const (
	// EndUnknown: nothing became of it; it is handed back and comes again.
	EndUnknown End = iota
	// EndApplied: its effect is committed.
	EndApplied
	// EndDuplicate: it is a copy of what had ended before.
	EndDuplicate
	// EndConflict: its identity was marked with other content.
	EndConflict
	EndParked
	EndDeadLettered
	EndDiscarded
	// EndSkipped: consumer.Config.Only leaves it to other consumers.
	EndSkipped
	// EndReceived: it is in the inbox, and no handler has run.
	EndReceived
	// EndWaiting: it is in the inbox until its next try is due.
	EndWaiting
	// EndStepped: a step of it is committed, and it is in the inbox for the next one.
	EndStepped
)

// Settlement is what to tell the broker of one delivery.
type Settlement struct {
	// Delivery has the Message, Lane, Before and Handle that Fetch returned.
	Delivery *Delivery
	Kind     semel.SettleKind
	After    time.Duration
	// Ending says, with Ack, how the delivery ended.
	Ending End
	Reason semel.Reason
	// Charged, with semel.Nack, says that the handler ran and failed by its own
	// error: an attempt. Otherwise the next delivery is no further one.
	Charged bool
	// Attempts and Err, with semel.DeadLetter, say how often the handler ran and how
	// its last run failed.
	Attempts int
	Err      error
}

// LaneObserver is told which lanes a source reads. Calls are made in order
// with Fetch's results: after Lost returns, no delivery of that epoch follows.
type LaneObserver interface {
	// Given says that deliveries of this lane and epoch will follow.
	Given(Lane)
	// Revoking returns when the lane's last settlement is in, or at ctx's end.
	Revoking(context.Context, Lane)
	// Lost says that the lane is gone; nothing of it can be settled any more.
	Lost(Lane)
}

// Source delivers messages at least once. It keeps alive, by itself, what is
// delivered and not settled. Fetch and Flow are called by one goroutine each;
// Settle may run beside Fetch.
type Source interface {
	// Lanes is called once, before the first Fetch.
	Lanes(LaneObserver)
	// Fetch waits for deliveries. At ctx's end it returns what it has taken.
	// No error says that the broker could be asked, also when nothing came:
	// after a failure the engine cancels a Fetch that waits, and takes that
	// answer for "it works again". A source that has not reached its broker
	// since the call began returns ctx's error then, which says neither.
	// ErrEnd, which may come with deliveries, says that nothing will ever
	// follow. An error that wraps semel.ErrBehind ends the run, which returns it.
	// After any other error the engine backs off and asks again. An error with
	// semel.DecidePermanent says that waiting cannot mend it, such as a topic that does
	// not exist: the log has it as an error and not as a warning.
	Fetch(ctx context.Context, most Bound) ([]Delivery, error)
	// Settle tells the broker; it returns the indexes that could not be
	// settled and are to be tried again. A lost lane is no error and its
	// settlements are done.
	Settle(ctx context.Context, s []Settlement) ([]int, error)
	// Flow pauses or resumes a lane; what is under way may still arrive.
	Flow(l Lane, on bool)
	// Close releases what the source holds; unsettled deliveries come again.
	Close(ctx context.Context) error
}

// DeadLettering is a Source that keeps dead letters. Where a consumer's policy
// may end in them, the engine calls DeadLetters once, before Lanes, and refuses
// to start without it or with its error.
type DeadLettering interface {
	// DeadLetters names the consumer whose dead letters will come. An error
	// says what is missing, such as a place for them.
	DeadLetters(consumer string) error
}

// IdleReporter is a Source that knows what is there beyond what it delivered. The
// engine asks, with no Fetch under way, before a run ends because of
// consumer.Config.IdleExit.
type IdleReporter interface {
	// Idle reports whether all that can be delivered now has been, and nothing
	// handed back waits. False lets the run go on. left is what is there and
	// cannot be delivered now, such as what stands in lanes that are paused. An
	// error says that it is not known: the run goes on, as after a Fetch that
	// failed.
	Idle(ctx context.Context) (idle bool, left []semel.Unfinished, err error)
}

// EndOfSource is a Source that can come to an end while something of it is unsettled,
// such as a file. The engine asks, with no Fetch under way, before a run without
// consumer.Config.IdleExit ends although messages wait for a newer release.
type EndOfSource interface {
	// Bounded reports whether the source comes to an end by itself, as far as is
	// known before anything is read. It is asked once.
	Bounded() bool
	// AtEnd reports whether nothing more will come while what was delivered stays
	// unsettled: everything was read, or stands in a lane that is paused and has
	// an end.
	AtEnd() bool
}

// LaneFailer is a Source of which a single lane can stand still by a fault,
// such as messages that were lost, while the others go on. Its Fetch does not
// fail for that: it would say that nothing can be read, and keep a run from
// ending idle.
type LaneFailer interface {
	// LaneFaults are the lanes that stand still now, each with Fault set. It is
	// called at any time, also beside every other method, and does not wait.
	LaneFaults() []semel.Unfinished
}

// ErrEnd is returned by Fetch when a source has ended: a file that is not
// followed, standard input.
var ErrEnd = errors.New("semel: the source has ended")

// Position is how far a lane of a log-like source without a broker is done.
type Position struct {
	// Offset is the byte after the last contiguous settled delivery.
	Offset int64
	// Length is the length of the file when the position was taken.
	Length int64
	// Check recognises the file: a hash of what stands before Offset.
	Check []byte
}

// PositionStore keeps positions in the consumer's store, by consumer and lane.
// A source may keep under a name of its own what else it must find again, such
// as where it first began, in Check.
type PositionStore interface {
	// LoadPosition returns the position and whether there is one.
	LoadPosition(ctx context.Context, consumer, lane string) (Position, bool, error)
	SavePosition(ctx context.Context, consumer, lane string, p Position) error
	// KeepPosition saves p where there is no position, and returns the one
	// that is there now: of several processes that call it at once all get
	// the same. After an error it is unknown whether p was saved.
	KeepPosition(ctx context.Context, consumer, lane string, p Position) (Position, error)
}

// Positioned is a Source that needs a PositionStore. The engine calls
// Positions once, before Lanes, and refuses to start if the store keeps none.
type Positioned interface {
	Positions(consumer string, store PositionStore)
}
