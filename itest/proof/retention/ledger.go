package retention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/ledger"
)

// Ledger is what came out.
type Ledger struct {
	// Markers are those that were old, Removed those that the reaper removed, Left those
	// that stay, which are of parked messages.
	Markers int `json:"old_markers"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	// Took is how many seconds the reaper worked; Slice is the longest of 99 in 100 of its
	// calls, Batch that of the workers' batches, in milliseconds.
	Took  float64 `json:"seconds"`
	Slice float64 `json:"slice_p99_ms"`
	Batch float64 `json:"batch_p99_ms"`
	// Before, While and After are messages a second.
	Before float64 `json:"rate_before"`
	While  float64 `json:"rate_while"`
	After  float64 `json:"rate_after"`
	// Fresh are new messages, Copies those that were known, Late copies of what was
	// removed, which were told as such.
	Fresh  int `json:"new_messages"`
	Copies int `json:"copies_known"`
	Late   int `json:"copies_too_old"`
	// Again are copies of old messages that took effect.
	Again int `json:"old_again"`
	// Waits are lines of the server's log that tell of a wait for a lock, or of a deadlock.
	Waits int `json:"log_lines_of_locks"`
	ledger.Balance

	slices []time.Duration
	parked int
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	kept := l.Markers / parkedEach
	switch {
	case l.Again > 0:
		return fmt.Errorf("%d copies of old messages took effect again", l.Again)
	case l.Waits > 0:
		return fmt.Errorf("the server's log tells of %d waits for locks, or deadlocks", l.Waits)
	case l.Left != kept:
		return fmt.Errorf("%d old markers are left, and %d are of parked messages", l.Left, kept)
	}
	return l.Balance.Wrong()
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(
		l.Wrong(),
		ledger.AtLeast(l.Markers-l.Markers/parkedEach, l.Removed, "markers were removed"),
		ledger.AtLeast(100, l.Late, "copies came of what was removed"),
		ledger.AtLeast(100, l.Copies, "copies came of what is there"),
	)
}
