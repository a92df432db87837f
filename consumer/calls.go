package consumer

import (
	"time"

	"github.com/semel-go/semel/store"
)

// aboutToCall notes of the rows of a flight that no call was made yet: its start is
// written down before it runs, and is taken back if it does not.
func (p *pilot[Tx]) aboutToCall(f *flight[Tx]) {
	if p.engine.config.way == byTransaction {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == store.Applied {
			h.Calls.Starting()
		}
	}
}

// serialFor is for how long contention makes batches run one at a time. Where each message
// is called out for, calls would be made one at a time, and all for a lock that somebody
// keeps of one of them; what follows from one answer is short, and is tried again alone.
func (c *settings) serialFor() time.Duration {
	if c.way.overRows() {
		return 0
	}
	return time.Minute
}
