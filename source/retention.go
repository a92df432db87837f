package source

import (
	"time"
)

// LaneAge is the progress of a lane.
type LaneAge struct {
	// Lane is the lane's permanent name, the same in every process.
	Lane string
	// Oldest is the broker's timestamp of the oldest record of the lane that is not settled; zero if
	// all records are settled.
	Oldest time.Time
}

// Horizon is how late a broker can redeliver a record.
type Horizon struct {
	// Late is the maximum time after the record was written. Unlimited means that there is no maximum.
	Late      time.Duration
	Unlimited bool
	// Why describes how it was determined, such as "topic payments: retention.ms 7d".
	Why string
}
