package timing

import "time"

// ClockSlack is the largest difference between a row's timestamp and the store's clock that counts as
// ordinary clock adjustment. Rows further in the future were written while the clock was ahead.
const ClockSlack = time.Second
