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
	// Epoch changes with every call of Given. Deliveries, acks and nacks of an older epoch are dropped.
	Epoch uint64
}

// Delivery is one delivery of a message.
type Delivery struct {
	Message *semel.Message
	Lane    Lane
	// Before is the number of earlier deliveries of the message, as counted by the broker. If the broker does not count
	// deliveries, Before is Unknown.
	Before int
	// Refused is the reason why the source could not decode the delivery, or "" if the delivery was decoded. The
	// consumer parks a refused delivery, with the raw bytes in Message.Body, and does not call the handler.
	Refused semel.Reason
	// Detail describes the fault for people, if Refused is set. Detail must not contain payload.
	Detail string
	// Handle belongs to the source. The consumer passes Handle back unchanged with Settle.
	Handle any
	// Undecoded, if not nil, decodes Message.Body into Message, Refused and Detail; see Decode. Only Semel's own
	// sources set Undecoded. Other sources leave Undecoded nil and return decoded messages.
	Undecoded reading.Decoder
}

// Decode decodes a delivery that the source returned undecoded. The consumer calls Decode in several goroutines at the
// same time. Code that reads Message, Refused or Detail earlier, such as a source that wraps another source, must call
// Decode(nil) first. A second call of Decode does nothing.
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

// Unknown is the value of Delivery.Before if the broker does not count deliveries.
const Unknown = -1

// Bound limits how much one call of Fetch returns. A source that has deliveries returns at least one, even if that
// delivery is larger than Bytes.
type Bound struct {
	Messages int
	Bytes    int64
}

// End is the outcome of a delivery.
type End uint8

// The outcomes of a delivery.
const (
	// EndUnknown means that the delivery has no outcome yet, and is nacked and delivered again.
	EndUnknown End = iota
	// EndApplied means that the effect of the message is committed.
	EndApplied
	// EndDuplicate means that the message is a copy of a message that already has an outcome.
	EndDuplicate
	// EndConflict means that the identity has a marker for other content.
	EndConflict
	EndParked
	EndDeadLettered
	EndDiscarded
	// EndSkipped means that consumer.Config.Filter does not select the message.
	EndSkipped
	// EndReceived means that the message is stored in the inbox and its handler has not run.
	EndReceived
	// EndWaiting means that the message is stored in the inbox until the time of its next attempt.
	EndWaiting
	// EndStepped means that a step of the message is committed and the message is stored in the inbox for the
	// next step.
	EndStepped
)

// Settlement is the ack, nack or dead letter of one delivery.
type Settlement struct {
	// Delivery is the delivery to ack, nack or dead-letter. Message, Lane, Before and Handle are as Fetch returned
	// them.
	Delivery *Delivery
	Kind     semel.SettleKind
	After    time.Duration
	// Ending is the outcome of the delivery, if Kind is semel.Ack.
	Ending End
	Reason semel.Reason
	// Charged is used with semel.Nack. Charged is true if the handler ran and failed by its own error, which counts as
	// an attempt. If Charged is false, the next delivery does not count as a further attempt.
	Charged bool
	// Attempts and Err are set with semel.DeadLetter: the number of times that the handler ran, and the error
	// of its last run.
	Attempts int
	Err      error
}

// LaneObserver is notified of the lanes that a source reads. The calls of a LaneObserver are ordered with the results
// of Fetch: after Lost returns, Fetch returns no delivery of the lost epoch.
type LaneObserver interface {
	// Given is called before the first delivery of a lane in an epoch.
	Given(Lane)
	// Revoking is called before the source gives a lane up. Revoking returns after the last message of the lane was
	// acked or nacked, or when ctx ends.
	Revoking(context.Context, Lane)
	// Lost is called after the source has lost a lane. Deliveries of the lane can no longer be acked or nacked.
	Lost(Lane)
}

// Source delivers messages at least once. If the broker has a visibility timeout, the source itself extends the timeout
// of deliveries that are not acked or nacked. Fetch is called by one goroutine only, and Flow by one goroutine only.
// Settle may be called concurrently with Fetch.
type Source interface {
	// Lanes is called once, before the first Fetch.
	Lanes(LaneObserver)
	// Fetch waits for deliveries. When ctx ends, Fetch returns the deliveries that it has. The error is one of:
	//
	//   - nil: the broker was reachable, even if there are no deliveries. After a failure the consumer cancels
	//     a waiting Fetch and treats a nil error as recovery.
	//   - ctx.Err(): the source has not reached its broker since the call started. The error ctx.Err() means neither
	//     success nor failure.
	//   - ErrEnd, possibly together with deliveries: there will be no further deliveries.
	//   - An error that wraps semel.ErrBehind: the consumer ends, and returns this error.
	//   - Any other error: the consumer waits and calls Fetch again. An error with semel.DecidePermanent, for example
	//     because a topic does not exist, is logged as an error; all others are logged as warnings.
	Fetch(ctx context.Context, most Bound) ([]Delivery, error)
	// Settle sends settlements (acks, nacks and dead letters) to the broker, and returns the indexes of the settlements
	// that failed and should be retried. Settlements of a lost lane count as done and cause no error.
	Settle(ctx context.Context, s []Settlement) ([]int, error)
	// Flow pauses or resumes a lane. Deliveries that are already in progress may still arrive.
	Flow(l Lane, on bool)
	// Close releases the resources of the source. Deliveries that are not acked are delivered again.
	Close(ctx context.Context) error
	// Info describes the source. Info has no side effect, may be called before Lanes and more than once, and
	// always returns the same features.
	Info() Info
}

// Info describes a source and its broker, and the features of the source in addition to Source. A zero field means that
// the source does not have the feature or the information. A source that wraps another source returns the Info of the
// wrapped source with its own changes.
type Info struct {
	// DeadLetters, for a source with a dead-letter queue, prepares the queue for dead letters of the consumer. The
	// error says what is missing, such as the topic for dead letters. If a consumer's policy can make dead letters, the
	// consumer calls DeadLetters once before Lanes, and does not start if DeadLetters is nil or returns an error.
	DeadLetters func(consumer string) error
	// Positions gives a source without a broker, such as a file, the store for its positions. The consumer
	// calls Positions once before Lanes. The consumer does not start if its store is not a PositionStore.
	Positions func(consumer string, s PositionStore)
	// Horizon returns how late the broker can redeliver a record. The consumer calls Horizon before the first
	// Fetch and once an hour.
	Horizon func(ctx context.Context) (Horizon, error)
	// Idle reports whether every message that can be delivered now was delivered and no nacked message waits. The
	// consumer calls Idle before it ends because of consumer.Config.IdleExit, while no Fetch is in progress. If idle is
	// false, the consumer continues. The result left lists messages that cannot be delivered now, such as messages of
	// paused lanes. An error means that the source does not know; the consumer then continues as after a failed Fetch.
	Idle func(ctx context.Context) (idle bool, left []semel.Unfinished, err error)
	// Unordered is true if the messages of a lane have no order, for example because several processes share the lane.
	// A consumer of such a source does not start unless consumer.Config.Lanes is consumer.LanesNone.
	Unordered bool
	// Bounded is true if the source has an end, as far as that is known before the first read.
	Bounded bool
	// AtEnd is for a source that can reach its end while deliveries are not acked, such as a file. AtEnd reports
	// whether the source returns no more messages as long as the current deliveries are not acked: all messages were
	// read, except in paused lanes that have an end. If messages wait for a newer release, the consumer calls AtEnd to
	// decide whether it may end. When AtEnd is called, no Fetch is in progress, and consumer.Config.IdleExit is not
	// set.
	AtEnd func() bool
	// LaneFaults is for a source in which one lane can fail while others continue, for example because messages were
	// lost. LaneFaults returns the failed lanes, each with Fault set. Fetch must not return an error for a failed lane,
	// because an error of Fetch means that no lane can be read. LaneFaults does not block, and is safe for concurrent
	// use with every other method.
	LaneFaults func() []semel.Unfinished
	// Ages returns the age of each lane of this process. The result all is false if the age of a lane is not known, for
	// example before the first record of a new lane. Ages does not block and may be called at any time.
	Ages func() (lanes []LaneAge, all bool)
}

// ErrEnd is returned by Fetch at the end of a source, such as a file or standard input.
var ErrEnd = errors.New("semel: the source has ended")

// Position is the read position in a lane of a source without a broker, such as a file.
type Position struct {
	// Offset is the position up to which all deliveries are acked or dead-lettered: the byte after the last of them.
	Offset int64
	// Length is the length of the file when the position was saved.
	Length int64
	// Check identifies the file: a hash of the bytes before Offset.
	Check []byte
}

// PositionStore stores positions in the consumer's store, by consumer and lane. In the field Check, a source may store
// other data under a lane name of its own, such as its first start position.
type PositionStore interface {
	// LoadPosition returns the stored position. If no position is stored, the bool is false.
	LoadPosition(ctx context.Context, consumer, lane string) (Position, bool, error)
	SavePosition(ctx context.Context, consumer, lane string, p Position) error
	// KeepPosition saves p if no position is stored, and returns the position that is then stored. If several processes
	// call KeepPosition at the same time, all get the same position. After an error it is unknown whether p was saved.
	KeepPosition(ctx context.Context, consumer, lane string, p Position) (Position, error)
}
