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
	Most             int
	ClaimsAlone      bool // a claim flies with nothing else; Most is of the others
	Alone            bool // so does each delivery whose handler runs, and it waits for none but of its key
	BatchTime        time.Duration
	MaxInMemoryWait  time.Duration
	MaxMessages      int
	MaxBytes         int64
	Drain            time.Duration
	MaxAttempts      int
	InitialDelay     time.Duration
	MaxDelay         time.Duration
	OnExhausted      Ending
	RetryCost        time.Duration // what a retry takes of the budget, and a failed trial waits
	RetryShare       time.Duration // what a first attempt gives to it
	RetrySaved       time.Duration // the most that it holds
	TrialAfter       int           // attempts that fail in a row, until one is tried at a time
	BreakerThreshold int           // messages that fail for good in a row, until the breaker opens; 0: never
	HaltLater        bool          // also where a handler has succeeded since the start
	OnConflict       Ending
	OnBadIdentity    Ending
	OnFiltered       Ending // park, dead letter or skip
	OnPrecondition   Ending
	OnUnversioned    Ending
	OnExpired        Ending        // what is older than what the store keeps
	IdleExit         time.Duration // 0: never
	Ends             bool          // the source can say that it has come to its end
	Bounded          bool          // it surely comes to one
	BackoffFirst     time.Duration // of a store or source that is down, of contention
	BackoffMost      time.Duration
	SerialFor        time.Duration // how long contention makes batches run one at a time; 0: never
	OneWriter        bool          // batches of the store take turns, always
	Unmarked         bool          // natural: no marks, no riding
	OneAttempt       bool          // hand back what would wait
	Inbox            bool          // rows that wait in the inbox are claimed
	Wait             bool          // what would wait for longer than MaxInMemoryWait is kept there
	Poll             time.Duration // how often the inbox is asked at least
	Keep             bool          // what is applied has a row, too
	Gap              time.Duration // how long a version waits for the one before it
	GapCap           int64         // how far ahead of its stream's next a version may wait; 0: any distance
	Block            bool          // what comes behind a message that waits in the inbox, or is parked, waits there, too
	Receive          bool          // deliveries are kept in the inbox before any handler runs
	NoRows           bool          // the store has no inbox: what a handler parks ends as OnExhausted says, and Commit.Rows are for the shell alone
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
