package machine

import "time"

// Lanes says what keeps its order.
type Lanes uint8

// The lane modes.
const (
	Partition Lanes = iota
	NoOrder
	Key
)

// Ending is how an item ends that cannot be applied.
type Ending uint8

// The endings a policy can choose.
const (
	EndPark Ending = iota
	EndHalt
	EndDiscard
	EndKeepFirst
	EndRetry
	EndDeadLetter
	EndSkip
)

// Config is the machine's policy; every field must be set.
type Config struct {
	Lanes            Lanes
	Workers          int
	Most             int  // the most messages of a flight
	ClaimsAlone      bool // a flight of a claim has no other message; Most limits the other flights
	Alone            bool // a delivery whose handler runs is alone in its flight, and waits only for messages of its key
	BatchTime        time.Duration
	MaxInMemoryWait  time.Duration
	MaxMessages      int
	MaxBytes         int64
	Drain            time.Duration
	MaxAttempts      int
	InitialDelay     time.Duration
	MaxDelay         time.Duration
	OnExhausted      Ending
	RetryCost        time.Duration // what a retry takes from the retry budget; also the wait after a failed trial
	RetryShare       time.Duration // what a first attempt adds to the budget
	RetrySaved       time.Duration // the most that the budget holds
	TrialAfter       int           // after so many failed attempts in a row, one message is tried at a time
	BreakerThreshold int           // after so many messages in a row that fail for good, the breaker opens; 0: never
	HaltLater        bool          // the breaker also opens if a handler has succeeded since the start
	OnConflict       Ending
	OnBadIdentity    Ending
	OnFiltered       Ending // EndPark, EndDeadLetter or EndSkip
	OnPrecondition   Ending
	OnUnversioned    Ending
	OnExpired        Ending        // ends a message that is older than what the store keeps
	IdleExit         time.Duration // 0: never
	Ends             bool          // the source can report that it has ended
	Bounded          bool          // the source surely ends
	BackoffFirst     time.Duration // the first wait after contention, or while a store or source is down
	BackoffMost      time.Duration // the longest such wait
	SerialFor        time.Duration // how long batches run one at a time after contention; 0: never
	OneWriter        bool          // batches always run one at a time
	Unmarked         bool          // strategy natural: messages are not marked, and no copy rides on another
	OneAttempt       bool          // a message that would wait is handed back
	Inbox            bool          // rows that wait in the inbox are claimed
	Wait             bool          // a message that would wait for longer than MaxInMemoryWait waits in the inbox
	Poll             time.Duration // the inbox is asked at least this often
	Keep             bool          // a message that is applied has a row, too
	Gap              time.Duration // how long a version waits for the one before it
	GapCap           int64         // how far ahead of its stream's next version a version may wait; 0: any distance
	Block            bool          // messages behind one that waits in the inbox, or is parked, wait in the inbox, too
	Receive          bool          // deliveries are stored in the inbox before any handler runs
	NoRows           bool          // the store has no inbox: a message that a handler parks ends as OnExhausted says, and only the shell uses Commit.Rows
	Seed             uint64
}

// Counts are what became of deliveries.
type Counts struct {
	Deliveries, Applied, Duplicates, Conflicts, Parked, DeadLettered, Discarded, Skipped, Failed int64
	Retried, Rerun                                                                               int64
	// Received and Waiting are deliveries that ended in the inbox.
	Received, Waiting int64
	Claims            Claims
}

// Claims are what became of rows that were claimed. All but Reclaimed add up to Claimed with
// those that are claimed now.
type Claims struct {
	Claimed, Applied, Duplicates, Waiting, Parked, DeadLettered, Discarded, Stepped, Released, Lost, Reclaimed int64 // as semel.InboxCounts has them
}
