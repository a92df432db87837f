package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// ReplayKind is the kind of a replay.
type ReplayKind string

const (
	// ReplayAgain replays into the active generation, where only missing messages are applied.
	ReplayAgain ReplayKind = "again"
	// ReplayRebuild replays into a new generation, where every message is applied.
	ReplayRebuild ReplayKind = "rebuild"
)

// ReplayState is the state of a replay.
type ReplayState string

const (
	// ReplayRunning means that the replay has started and has not ended. Replay.Left says whether a process runs the
	// replay.
	ReplayRunning ReplayState = "running"
	// ReplayStopping means that an operator has stopped the replay, and that the process of the replay has not noticed
	// the command yet.
	ReplayStopping ReplayState = "stopping"
	// ReplayStopped means that the replay was stopped and can be resumed.
	ReplayStopped ReplayState = "stopped"
	// ReplayDone means that the replay is complete.
	ReplayDone ReplayState = "done"
)

// Ended reports whether the replay is stopped or complete.
func (s ReplayState) Ended() bool { return s == ReplayStopped || s == ReplayDone }

// Replay is a stored replay.
type Replay struct {
	Number   int64
	Consumer string
	Kind     ReplayKind
	// Generation is the generation that a rebuild fills. Generation is 0 with ReplayAgain.
	Generation int64
	// Effects allows effects outside of the store.
	Effects bool
	// Start contains who started the replay, and why. Stop contains who last stopped the replay, and why.
	Start, Stop Order
	State       ReplayState
	// Left is the remaining lease of the process that runs the replay, by the store's clock. If no process runs the
	// replay, Left is 0.
	Left time.Duration
	// Saved is the time of the last SaveReplay. Ended is the time when the replay ended, or zero if it has
	// not ended.
	Saved, Ended time.Time
	Progress     ReplayProgress
}

// ReplayProgress is the range and the progress of a replay.
type ReplayProgress struct {
	// Range describes the messages that are replayed.
	Range string       `json:"range,omitempty"`
	Lanes []ReplayLane `json:"lanes,omitempty"`
	// Since (inclusive) and Until (exclusive), if not zero, limit the time of the messages. Since and Until are used if
	// offsets do not limit the range.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Counts contains the counts of messages up to After in each lane. Prediction is the result of the
	// preview.
	Counts     ReplayCounts  `json:"counts,omitzero"`
	Prediction *ReplayCounts `json:"predicted,omitempty"`
}

// ReplayLane is the progress of a replay in one lane.
type ReplayLane struct {
	// Lane is the source's name of the lane. The field Is identifies the lane, for example by a topic's id or by a hash
	// of the end of a file.
	Lane string `json:"lane"`
	Is   string `json:"is,omitempty"`
	// From is the offset of the first message, and To is the offset after the last message. Messages with an offset
	// greater than After are not acked yet. At first, After is less than From.
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	After int64 `json:"after"`
}

// ReplayCounts counts the messages of a replay.
type ReplayCounts struct {
	// Read counts all messages.
	Read int64 `json:"read"`
	// Applied counts messages that the replay has applied. Skipped counts messages that ended before the replay, or
	// that another process handles.
	Applied int64 `json:"applied"`
	Skipped int64 `json:"skipped"`
	// Conflicts counts messages whose identity is known with other content.
	Conflicts int64 `json:"conflicts"`
	// Received and Waiting count messages that are in the inbox and are processed later.
	Received     int64 `json:"received"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Foreign counts messages that the consumer's filter does not select.
	Foreign int64 `json:"foreign"`
	// TooOld counts messages that are older than the policy allows. Timeless counts messages that have no timestamp.
	// The consumer gets neither messages that are too old nor messages without a timestamp.
	TooOld   int64 `json:"too_old"`
	Timeless int64 `json:"timeless"`
	// Unknown counts messages whose outcome cannot be predicted. Unknown is used only in a prediction.
	Unknown int64 `json:"unknown,omitempty"`
}

// Errors of the interface Replays. Each error wraps semel.ErrState and means that nothing was changed.
var (
	// ErrReplayOpen means that another replay of the consumer in the same generation has not ended.
	ErrReplayOpen = fmt.Errorf("another replay of the consumer has not ended: %w", semel.ErrState)
	// ErrReplayHeld means that another process runs the replay.
	ErrReplayHeld = fmt.Errorf("another process runs the replay: %w", semel.ErrState)
	// ErrReplayEnded means that the replay has ended.
	ErrReplayEnded = fmt.Errorf("the replay has ended: %w", semel.ErrState)
	// ErrNoReplay means that there is no replay with the given number.
	ErrNoReplay = fmt.Errorf("there is no replay of this number: %w", semel.ErrState)
)

// Replays is implemented by a store that keeps the replays of its consumers. Only one process at a time runs a replay,
// with a token and a lease by the store's clock. A consumer has at most one replay per generation that has not ended.
// The transaction of each change also writes an audit record (store.Act) without a row. The Why of the audit record
// starts with the consumer's name.
type Replays interface {
	// NewReplay starts a replay with the Consumer, Kind, Generation, Effects and Progress of r and returns
	// its number. ErrReplayOpen means that a replay of the consumer has not ended.
	NewReplay(ctx context.Context, r Replay, t store.Token, lease time.Duration, a store.Act) (int64, error)
	// TakeReplay assigns a replay that no process runs to the caller, with the token t.
	TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (Replay, error)
	// SaveReplay stores the progress, extends the lease and returns the state. ReplayStopping means that the
	// caller should stop. ErrClaimLost means that the replay has another token or has ended; nothing is
	// stored.
	SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p ReplayProgress) (ReplayState, error)
	// EndReplay ends the replay as ReplayDone or ReplayStopped. EndReplay returns ErrClaimLost in the same
	// cases as SaveReplay.
	EndReplay(ctx context.Context, number int64, t store.Token, s ReplayState, p ReplayProgress, a store.Act) error
	// StopReplay stops the replay. If no process runs the replay, the replay stops at once. If a process runs the
	// replay, the process notices the stop with its next SaveReplay. ErrReplayEnded means that the replay has ended or
	// is stopped.
	StopReplay(ctx context.Context, number int64, a store.Act) (Replay, error)
	// Replay returns a replay, or ErrNoReplay.
	Replay(ctx context.Context, number int64) (Replay, error)
	// ReplaysOf returns the replays of a consumer, newest first. If consumer is "", ReplaysOf returns the
	// replays of all consumers. A limit of 0 means 1,000.
	ReplaysOf(ctx context.Context, consumer string, limit int) ([]Replay, error)
}
