package source

import (
	"time"
)

// LaneAge is the age of the oldest record of a lane that is not acked.
type LaneAge struct {
	// Lane is the lane's permanent name, the same in every process.
	Lane string
	// Oldest is the broker's timestamp of the oldest record in the lane that is not acked, or zero if all records are
	// acked.
	Oldest time.Time
}

// Horizon is the time for which a broker can redeliver a record.
type Horizon struct {
	// Late is the longest time between the writing of a record and its last delivery. Unlimited is true if
	// there is no longest time.
	Late      time.Duration
	Unlimited bool
	// Why describes where the value comes from, such as "topic payments: retention.ms 7d".
	Why string
}
