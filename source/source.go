package source

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/reading"
)

// String returns the name of the outcome.
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
	// Epoch changes with every Given. Deliveries and settlements of an older epoch are dropped.
	Epoch uint64
}

// Delivery is one delivery of a message.
type Delivery struct {
	Message *semel.Message
	Lane    Lane
	// Before is the number of earlier deliveries of the message, as counted by the broker, or
	// Unknown.
	Before int
	// Refused, if not empty, says why the source could not decode the delivery. The engine parks
	// such a delivery, with the raw bytes in Message.Body, and does not call the handler.
	Refused semel.Reason
	// Detail, with Refused, describes the fault for people. Detail must not contain payload.
	Detail string
	// Handle is private to the source. The engine passes it back with Settle.
	Handle any
	// Undecoded, if not nil, decodes Message.Body into Message, Refused and Detail; see Decode.
	// Only Semel's own sources set it. Other sources leave it nil and return decoded messages.
	Undecoded reading.Decoder
}

// Decode decodes a delivery that the source returned undecoded. The engine calls it in parallel
// goroutines. Code that reads Message, Refused or Detail earlier, such as a source that wraps
// another source, must call Decode(nil) first. A second call does nothing.
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

// Unknown is Delivery.Before if the broker does not count deliveries.
const Unknown = -1

// Bound limits what one Fetch returns. A source that has a delivery returns at least one, even if it
// exceeds Bytes.
type Bound struct {
	Messages int
	Bytes    int64
}

// End is the outcome of a delivery.
type End uint8

// The outcomes of a delivery.
const (
	// EndUnknown: the delivery has no outcome yet. It is nacked and delivered again.
	EndUnknown End = iota
	// EndApplied: its effect is committed.
	EndApplied
	// EndDuplicate: it is a copy of a message that already has an outcome.
	EndDuplicate
	// EndConflict: its identity is marked with another content.
	EndConflict
	EndParked
	EndDeadLettered
	EndDiscarded
	// EndSkipped: consumer.Config.Filter does not select it.
	EndSkipped
	// EndReceived: it is stored in the inbox, and its handler has not run.
	EndReceived
	// EndWaiting: it is stored in the inbox until its next attempt is due.
	EndWaiting
	// EndStepped: one of its steps is committed, and it is stored in the inbox for the next step.
	EndStepped
)

// Settlement is the ack, nack or dead letter of one delivery.
type Settlement struct {
	// Delivery has the Message, Lane, Before and Handle that Fetch returned.
	Delivery *Delivery
	Kind     semel.SettleKind
	After    time.Duration
	// Ending, with Ack, is the outcome of the delivery.
	Ending End
	Reason semel.Reason
	// Charged, with semel.Nack, reports that the handler ran and failed by its own error, which
	// counts as an attempt. Without it, the next delivery does not count as a further attempt.
	Charged bool
	// Attempts and Err, with semel.DeadLetter, are the number of times the handler ran and the
	// error of its last run.
	Attempts int
	Err      error
}

// LaneObserver is notified of the lanes that a source reads. Calls are ordered with the results of
// Fetch: after Lost returns, Fetch returns no delivery of that epoch.
type LaneObserver interface {
	// Given is called before the first delivery of a lane and epoch.
	Given(Lane)
	// Revoking is called before a lane is given up. Revoking returns after the lane's last
	// settlement, or when ctx ends.
	Revoking(context.Context, Lane)
	// Lost is called when the lane is gone. Its deliveries can no longer be settled.
	Lost(Lane)
}

// Source delivers messages at least once. If the broker requires it, the source itself extends the
// visibility of deliveries that are not settled yet. One goroutine calls Fetch and one calls Flow.
// Settle may be called concurrently with Fetch.
type Source interface {
	// Lanes is called once, before the first Fetch.
	Lanes(LaneObserver)
	// Fetch waits for deliveries. When ctx ends it returns the deliveries that it has. A nil error
	// means that the broker was reachable, even without deliveries: after a failure the engine
	// cancels a waiting Fetch and treats a nil error as recovery. A source that has not reached
	// its broker since the call started returns ctx.Err(), which means neither success nor
	// failure. ErrEnd, possibly together with deliveries, means that there will be no more. An
	// error that wraps semel.ErrBehind ends the run, which returns it. After any other error the
	// engine waits and calls Fetch again. An error with semel.DecidePermanent, such as a topic
	// that does not exist, is logged as an error instead of a warning.
	Fetch(ctx context.Context, most Bound) ([]Delivery, error)
	// Settle sends settlements to the broker and returns the indexes of those that failed and
	// should be retried. A lost lane is not an error; its settlements count as done.
	Settle(ctx context.Context, s []Settlement) ([]int, error)
	// Flow pauses or resumes a lane. Deliveries that are already on their way may still arrive.
	Flow(l Lane, on bool)
	// Close releases the source's resources. Unsettled deliveries are delivered again.
	Close(ctx context.Context) error
	// Info returns what the source knows about itself. Info has no side effect, may be called
	// before Lanes and more than once, and always returns the same features.
	Info() Info
}

// Info contains what a source knows about itself and its broker, and what it can do beyond Source. A zero
// field means that the source does not know it or cannot do it. A source that wraps another returns the
// other's Info with its own changes.
type Info struct {
	// DeadLetters, for a source with a dead-letter queue, prepares for dead letters of the consumer. The
	// error says what is missing, such as the topic for them. If a consumer's policy can send messages
	// there, the engine calls it once before Lanes. The consumer does not start without DeadLetters, or
	// if it returns an error.
	DeadLetters func(consumer string) error
	// Positions gives a source without a broker, such as a file, the store of its positions. The engine
	// calls it once before Lanes. The consumer does not start if its store is not a PositionStore.
	Positions func(consumer string, s PositionStore)
	// Horizon returns how late the broker can redeliver a record. The engine calls it before the first
	// Fetch and once an hour.
	Horizon func(ctx context.Context) (Horizon, error)
	// Idle reports whether every message that can be delivered now was delivered and no nacked message
	// waits. The engine calls it before a run ends because of consumer.Config.IdleExit, while no Fetch
	// runs. With false the run continues. left lists messages that cannot be delivered now, such as
	// those of paused lanes. An error means that the source does not know; the run continues as after
	// a failed Fetch.
	Idle func(ctx context.Context) (idle bool, left []semel.Unfinished, err error)
	// Bounded means that the source ends by itself, as far as that is known before the first read.
	Bounded bool
	// AtEnd, for a source that can end while some of its deliveries are unsettled, such as a file, reports
	// whether it returns nothing more while they stay unsettled: everything was read, except in paused
	// lanes that have an end. The engine calls it, while no Fetch runs, before a run without
	// consumer.Config.IdleExit ends although messages wait for a newer release.
	AtEnd func() bool
	// LaneFaults, for a source in which one lane can fail while others continue, for example because
	// messages were lost, returns the failed lanes, each with Fault set. Fetch must not return an error
	// for such a lane, because an error of Fetch means that nothing can be read. LaneFaults does not
	// block and is safe for concurrent use with every other method.
	LaneFaults func() []semel.Unfinished
	// Ages returns the progress of each lane of this process. all is false if the progress of a lane is
	// not known, for example before the first record of a new lane. Ages does not block and may be
	// called at any time.
	Ages func() (lanes []LaneAge, all bool)
}

// ErrEnd is returned by Fetch at the end of a source, such as a file or standard input.
var ErrEnd = errors.New("semel: the source has ended")

// Position is the read position in a lane of a source without a broker, such as a file.
type Position struct {
	// Offset is the byte after the last delivery before which all deliveries are settled.
	Offset int64
	// Length is the length of the file at that time.
	Length int64
	// Check identifies the file: a hash of the bytes before Offset.
	Check []byte
}

// PositionStore stores positions in the consumer's store, by consumer and lane. A source may store
// other data in Check under a name of its own, such as its first start position.
type PositionStore interface {
	// LoadPosition returns the position and reports whether there is one.
	LoadPosition(ctx context.Context, consumer, lane string) (Position, bool, error)
	SavePosition(ctx context.Context, consumer, lane string, p Position) error
	// KeepPosition saves p if there is no position, and returns the stored position. Processes
	// that call it concurrently all get the same position. After an error it is unknown whether
	// p was saved.
	KeepPosition(ctx context.Context, consumer, lane string, p Position) (Position, error)
}
