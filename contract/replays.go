package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// ReplayKind says into which generation messages are replayed.
type ReplayKind string

// The kinds.
const (
	// ReplayAgain: into the live one, where only what is missing is applied.
	ReplayAgain ReplayKind = "again"
	// ReplayRebuild: into one of its own, where everything is.
	ReplayRebuild ReplayKind = "rebuild"
)

// ReplayState is how far a replay has come.
type ReplayState string

// The states.
const (
	// ReplayRunning: it has begun and not ended. Whether somebody runs it, Left tells.
	ReplayRunning ReplayState = "running"
	// ReplayStopping: somebody wants it stopped, and who runs it has not seen that yet.
	ReplayStopping ReplayState = "stopping"
	// ReplayStopped: it ended before its end, and may be resumed.
	ReplayStopped ReplayState = "stopped"
	// ReplayDone: it has come to its end.
	ReplayDone ReplayState = "done"
)

// Ended reports whether nobody may run the replay as it is.
func (s ReplayState) Ended() bool { return s == ReplayStopped || s == ReplayDone }

// Replay is a replay as a store keeps it.
type Replay struct {
	Number   int64
	Consumer string
	Kind     ReplayKind
	// Generation is 0 with ReplayAgain.
	Generation int64
	// Effects: those outside of the store are allowed.
	Effects bool
	// Start says who began it, and why; Stop who wanted it stopped last.
	Start, Stop Order
	State       ReplayState
	// Left is how long the lease of who runs it lasts, by the store's clock; 0: nobody runs it.
	Left time.Duration
	// Saved is when its progress was kept last, Ended when it ended; zero if it did not.
	Saved, Ended time.Time
	Progress     ReplayProgress
}

// ReplayProgress is what a replay is of, and how far it has come.
type ReplayProgress struct {
	// Range says for people what is replayed.
	Range string       `json:"range,omitempty"`
	Lanes []ReplayLane `json:"lanes,omitempty"`
	// Since and Until, where they are not zero, are the time of the first message, and of
	// the first one behind the last, where offsets do not say that.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Counts are of what is behind After in each lane; Prediction is what was said in advance.
	Counts     ReplayCounts  `json:"counts,omitzero"`
	Prediction *ReplayCounts `json:"foretold,omitempty"`
}

// ReplayLane is how far one lane is replayed.
type ReplayLane struct {
	// Lane is the source's name for it, Is what recognises it: a topic's id, a hash of what
	// stood at the end of a file.
	Lane string `json:"lane"`
	Is   string `json:"is,omitempty"`
	// From is the offset of its first message, To the one that it ends before. After is the
	// offset behind which nothing is settled yet, less than From at first.
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	After int64 `json:"after"`
}

// ReplayCounts are of messages.
type ReplayCounts struct {
	// Read are all.
	Read int64 `json:"read"`
	// Applied took effect by the replay; Skipped had ended before, or are in hand
	// elsewhere.
	Applied int64 `json:"applied"`
	Skipped int64 `json:"skipped"`
	// Conflicts have another content than what ended before.
	Conflicts int64 `json:"conflicts"`
	// Received and Waiting stand in the inbox, to be worked on later.
	Received     int64 `json:"received"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Foreign are not the consumer's.
	Foreign int64 `json:"foreign"`
	// TooOld are older than the policy lets be replayed, Timeless have no time by which that
	// could be told; neither is given to the consumer.
	TooOld   int64 `json:"too_old"`
	Timeless int64 `json:"timeless"`
	// Unknown, of what is said in advance, cannot be known.
	Unknown int64 `json:"unknown,omitempty"`
}

// The refusals of Replays; each is an semel.ErrState, and nothing was done.
var (
	// ErrReplayOpen: another replay of the consumer, in this generation, has not ended.
	ErrReplayOpen = fmt.Errorf("another replay of the consumer has not ended: %w", semel.ErrState)
	// ErrReplayHeld: another process runs it.
	ErrReplayHeld = fmt.Errorf("another process runs the replay: %w", semel.ErrState)
	// ErrReplayEnded: it has come to its end.
	ErrReplayEnded = fmt.Errorf("the replay has ended: %w", semel.ErrState)
	// ErrNoReplay: there is none of this number.
	ErrNoReplay = fmt.Errorf("there is no replay of this number: %w", semel.ErrState)
)

// Replays is an optional ability of a store: to keep the replays of its consumers. One
// process runs a replay at a time, under a token and a lease by the store's clock, and of
// one consumer and generation one replay has not ended at a time. Acts are recorded in the
// transaction of what they change, as acts of no row; their Why begins with the consumer.
type Replays interface {
	// NewReplay begins a replay, of which it takes Consumer, Kind, Generation, Effects and
	// Progress, and returns its number. ErrReplayOpen: one of the consumer has not ended.
	NewReplay(ctx context.Context, r Replay, t Token, lease time.Duration, a Act) (int64, error)
	// TakeReplay has a replay that nobody runs run on, by who has the token.
	TakeReplay(ctx context.Context, number int64, t Token, lease time.Duration, a Act) (Replay, error)
	// SaveReplay keeps how far it has come, extends the lease, and returns the state:
	// ReplayStopping if it is to be stopped. ErrClaimLost: another token stands there, or it
	// has ended; nothing was kept.
	SaveReplay(ctx context.Context, number int64, t Token, lease time.Duration, p ReplayProgress) (ReplayState, error)
	// EndReplay ends it as ReplayDone or ReplayStopped. ErrClaimLost as of SaveReplay.
	EndReplay(ctx context.Context, number int64, t Token, s ReplayState, p ReplayProgress, a Act) error
	// StopReplay has it stopped: at once if nobody runs it, else who runs it sees it with
	// the next SaveReplay. ErrReplayEnded: it has ended, or is stopped already.
	StopReplay(ctx context.Context, number int64, a Act) (Replay, error)
	// Replay returns a replay; ErrNoReplay if there is none.
	Replay(ctx context.Context, number int64) (Replay, error)
	// ReplaysOf returns the newest replays of a consumer, of all with "", the newest first. A
	// limit of 0 means 1,000.
	ReplaysOf(ctx context.Context, consumer string, limit int) ([]Replay, error)
}
