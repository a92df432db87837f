package machine

import "time"

// Lanes says which messages are processed in order.
type Lanes uint8

const (
	Partition Lanes = iota
	NoOrder
	Key
)

// Ending says how an item ends that is not applied.
type Ending uint8

// The endings that a policy can select.
const (
	EndPark Ending = iota
	EndHalt
	EndDiscard
	EndKeepFirst
	EndRetry
	EndDeadLetter
	EndSkip
)

// Config contains the machine's settings. Every field must be set.
type Config struct {
	Lanes            Lanes
	Workers          int
	Most             int  // maximum number of messages in a batch
	ClaimsAlone      bool // a claimed row has a batch of its own; Most limits the other batches
	Alone            bool // a delivery with a handler has a batch of its own, and waits only for messages of its key
	BatchTime        time.Duration
	MaxInMemoryWait  time.Duration
	MaxMessages      int
	MaxBytes         int64
	Drain            time.Duration
	MaxAttempts      int
	InitialDelay     time.Duration
	MaxDelay         time.Duration
	OnExhausted      Ending
	RetryCost        time.Duration // a retry takes this from the retry budget; also the delay after a failed trial
	RetryShare       time.Duration // a first attempt adds this to the budget
	RetrySaved       time.Duration // maximum of the retry budget
	TrialAfter       int           // number of consecutive failed attempts after which one message is tried at a time
	BreakerThreshold int           // number of consecutive permanent failures that opens the breaker; 0 means never
	HaltLater        bool          // the breaker also opens after a handler has succeeded
	OnConflict       Ending
	OnBadIdentity    Ending
	OnFiltered       Ending // EndPark, EndDeadLetter or EndSkip
	OnPrecondition   Ending
	OnUnversioned    Ending
	OnExpired        Ending        // for messages older than the retention of markers
	IdleExit         time.Duration // 0 means never
	Ends             bool          // the source can report that it has ended
	Bounded          bool          // the source always ends
	BackoffFirst     time.Duration // first delay after contention or a failure of store or source
	BackoffMost      time.Duration // maximum delay after contention or a failure of store or source
	SerialFor        time.Duration // how long batches run one at a time after contention; 0 means never
	OneWriter        bool          // batches always run one at a time
	Unmarked         bool          // strategy natural: no markers, and copies do not wait for one another
	OneAttempt       bool          // a message that would have to wait is returned to the caller
	Inbox            bool          // claim rows of the inbox
	Wait             bool          // a message that would wait longer than MaxInMemoryWait waits in the inbox
	Poll             time.Duration // maximum interval between claims
	Keep             bool          // applied messages have a row too
	Gap              time.Duration // how long a version waits for its predecessor
	GapCap           int64         // maximum distance of a waiting version from the stream's next version; 0 means no limit
	Block            bool          // a message waits in the inbox if an earlier message of its key or lane waits there or is parked
	Receive          bool          // store deliveries in the inbox before any handler runs
	NoRows           bool          // no inbox: a parked message ends as OnExhausted says
	Seed             uint64
}

// Counts contains how many deliveries ended in each way.
type Counts struct {
	Deliveries, Applied, Duplicates, Conflicts, Parked, DeadLettered, Discarded, Skipped, Failed int64
	Retried, Rerun                                                                               int64
	// Received and Waiting count deliveries that were stored in the inbox.
	Received, Waiting int64
	Claims            Claims
}

// Claims contains how many claims ended in each way. Claimed is the sum of the other fields except Reclaimed,
// plus the current claims.
type Claims struct {
	Claimed, Applied, Duplicates, Waiting, Parked, DeadLettered, Discarded, Stepped, Released, Lost, Reclaimed int64 // as in semel.InboxCounts
}
