package source

import (
	"context"
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

// RecordAges is implemented by a Source that knows the age of its unsettled records.
type RecordAges interface {
	// Ages returns the progress of each lane of this process. all is false if the progress of a lane is
	// not known, for example before the first record of a new lane. It does not block and may be
	// called at any time.
	Ages() (lanes []LaneAge, all bool)
}

// Horizon is how late a broker can redeliver a record.
type Horizon struct {
	// Late is the maximum time after the record was written. Unlimited means that there is no maximum.
	Late      time.Duration
	Unlimited bool
	// Why describes how it was determined, such as "topic payments: retention.ms 7d".
	Why string
}

// HorizonReporter is implemented by a Source that knows how late its broker can redeliver a record. The
// engine calls Horizon before the first Fetch and once an hour.
type HorizonReporter interface {
	Horizon(ctx context.Context) (Horizon, error)
}
