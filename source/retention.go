package source

import (
	"time"
)

// LaneAge says how far a lane is settled.
type LaneAge struct {
	// Lane is the lane's permanent name, the same in every process.
	Lane string
	// Oldest is the broker's timestamp of the oldest unsettled record in the lane; zero if all records are
	// settled.
	Oldest time.Time
}

// Horizon says how late a broker can redeliver a record.
type Horizon struct {
	// Late is the longest time between the writing of a record and its last delivery. Unlimited is true if
	// there is no longest time.
	Late      time.Duration
	Unlimited bool
	// Why describes where the value comes from, such as "topic payments: retention.ms 7d".
	Why string
}
