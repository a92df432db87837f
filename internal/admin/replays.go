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

// The kinds.
const (
	// ReplayAgain replays into the active generation, where only missing messages are applied.
	ReplayAgain ReplayKind = "again"
	// ReplayRebuild replays into a new generation, where every message is applied.
	ReplayRebuild ReplayKind = "rebuild"
)

// ReplayState is the state of a replay.
type ReplayState string

// The states.
const (
	// ReplayRunning: it has started and not ended. Replay.Left says whether a process runs it.
	ReplayRunning ReplayState = "running"
	// ReplayStopping: an operator stopped it, and its process has not noticed yet.
	ReplayStopping ReplayState = "stopping"
	// ReplayStopped: it was stopped and can be resumed.
	ReplayStopped ReplayState = "stopped"
	// ReplayDone: it is complete.
	ReplayDone ReplayState = "done"
)

// Ended reports whether the replay is stopped or complete.
func (s ReplayState) Ended() bool { return s == ReplayStopped || s == ReplayDone }

// Replay is a stored replay.
type Replay struct {
	Number   int64
	Consumer string
	Kind     ReplayKind
	// Generation is 0 with ReplayAgain.
	Generation int64
	// Effects allows effects outside of the store.
	Effects bool
	// Start says who started it and why; Stop says who last stopped it.
	Start, Stop Order
	State       ReplayState
	// Left is the remaining lease of the process that runs it, by the store's clock; 0 if none does.
	Left time.Duration
	// Saved is the time of the last SaveReplay, Ended the time when it ended; zero if it did not.
	Saved, Ended time.Time
	Progress     ReplayProgress
}

// ReplayProgress is the range and the progress of a replay.
type ReplayProgress struct {
	// Range describes what is replayed.
	Range string       `json:"range,omitempty"`
	Lanes []ReplayLane `json:"lanes,omitempty"`
	// Since (inclusive) and Until (exclusive), if not zero, limit the time of the messages, if offsets do
	// not.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Counts are the counts of messages up to After in each lane. Prediction is the result of the preview.
	Counts     ReplayCounts  `json:"counts,omitzero"`
	Prediction *ReplayCounts `json:"predicted,omitempty"`
}

// ReplayLane is the progress of a replay in one lane.
type ReplayLane struct {
	// Lane is the source's name of the lane. Is identifies it, such as a topic's id or a hash of the end of a
	// file.
	Lane string `json:"lane"`
	Is   string `json:"is,omitempty"`
	// From is the offset of the first message and To the offset after the last. Messages after offset After
	// are not settled yet; After starts below From.
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	After int64 `json:"after"`
}

// ReplayCounts counts the messages of a replay.
type ReplayCounts struct {
	// Read counts all messages.
	Read int64 `json:"read"`
	// Applied messages were applied by the replay. Skipped messages had ended before or are processed
	// elsewhere.
	Applied int64 `json:"applied"`
	Skipped int64 `json:"skipped"`
	// Conflicts have another content than the message that ended before.
	Conflicts int64 `json:"conflicts"`
	// Received and Waiting messages are in the inbox and are processed later.
	Received     int64 `json:"received"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Foreign messages are not selected by the consumer's filter.
	Foreign int64 `json:"foreign"`
	// TooOld messages are older than the policy allows, and Timeless messages have no timestamp to check
	// that. Neither are given to the consumer.
	TooOld   int64 `json:"too_old"`
	Timeless int64 `json:"timeless"`
	// Unknown, in a prediction, counts messages whose outcome cannot be predicted.
	Unknown int64 `json:"unknown,omitempty"`
}

// The errors of Replays. Each wraps semel.ErrState, and nothing was changed.
var (
	// ErrReplayOpen: another replay of the consumer in this generation has not ended.
	ErrReplayOpen = fmt.Errorf("another replay of the consumer has not ended: %w", semel.ErrState)
	// ErrReplayHeld: another process runs it.
	ErrReplayHeld = fmt.Errorf("another process runs the replay: %w", semel.ErrState)
	// ErrReplayEnded: the replay has ended.
	ErrReplayEnded = fmt.Errorf("the replay has ended: %w", semel.ErrState)
	// ErrNoReplay: there is no replay with this number.
	ErrNoReplay = fmt.Errorf("there is no replay of this number: %w", semel.ErrState)
)

// Replays is implemented by a store that keeps the replays of its consumers. One process at a time runs a replay,
// with a token and a lease by the store's clock. A consumer has at most one replay per generation that has not
// ended. The transaction of each change also writes an audit record (store.Act) without a row, whose Why starts
// with the consumer's name.
type Replays interface {
	// NewReplay starts a replay with the Consumer, Kind, Generation, Effects and Progress of r and returns
	// its number. ErrReplayOpen: a replay of the consumer has not ended.
	NewReplay(ctx context.Context, r Replay, t store.Token, lease time.Duration, a store.Act) (int64, error)
	// TakeReplay gives a replay that no process runs to the caller with this token.
	TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (Replay, error)
	// SaveReplay stores the progress, extends the lease and returns the state: ReplayStopping if the caller
	// should stop. ErrClaimLost: the replay has another token or has ended; nothing is stored.
	SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p ReplayProgress) (ReplayState, error)
	// EndReplay ends the replay as ReplayDone or ReplayStopped. ErrClaimLost is returned as by SaveReplay.
	EndReplay(ctx context.Context, number int64, t store.Token, s ReplayState, p ReplayProgress, a store.Act) error
	// StopReplay stops the replay: at once if no process runs it, otherwise its process notices with the next
	// SaveReplay. ErrReplayEnded: the replay has ended or is stopped.
	StopReplay(ctx context.Context, number int64, a store.Act) (Replay, error)
	// Replay returns a replay, or ErrNoReplay.
	Replay(ctx context.Context, number int64) (Replay, error)
	// ReplaysOf returns the replays of a consumer, or of all consumers with "", newest first. A limit of 0
	// means 1,000.
	ReplaysOf(ctx context.Context, consumer string, limit int) ([]Replay, error)
}
