package timing

import "time"

// ClockSlack is the maximum difference between a row's timestamp and the store's clock that counts as an
// ordinary clock adjustment. If the timestamp of a row is further in the future, the row was written while
// the clock was ahead.
const ClockSlack = time.Second

// LaneTimeout is how long a lane may be silent or behind before operators are told.
const LaneTimeout = 5 * time.Minute
