package simulator

import (
	"time"
)

// markLock is how long a mark waits for a copy in flight elsewhere.
const markLock = 50 * time.Millisecond
