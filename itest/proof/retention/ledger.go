package retention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// Pace is what the workers did beside what was removed.
type Pace struct {
	// Took is how many seconds it took; Batch is the longest of 99 in 100 of the workers'
	// batches, in milliseconds.
	Took  float64 `json:"seconds"`
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
}

// Wrong says what was wrong beside it; nil if nothing was.
func (p Pace) Wrong() error {
	switch {
	case p.Again > 0:
		return fmt.Errorf("%d copies of old messages took effect again", p.Again)
	case p.Waits > 0:
		return fmt.Errorf("the server's log tells of %d waits for locks, or deadlocks", p.Waits)
	}
	return p.Balance.Wrong()
}

// Fault says why it is no proof; nil if it is one.
func (p Pace) Fault() error {
	return cmp.Or(
		ledger.AtLeast(100, p.Late, "copies came of what was removed"),
		ledger.AtLeast(100, p.Copies, "copies came of what is there"),
	)
}

// Ledger is what came out where markers were deleted.
type Ledger struct {
	// Markers are those that were old, Removed those that the reaper removed, Left those
	// that stay, which are of parked messages.
	Markers int `json:"old_markers"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	// Slice is the longest of 99 in 100 of the reaper's calls, in milliseconds.
	Slice float64 `json:"slice_p99_ms"`
	Pace

	slices []time.Duration
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	if kept := l.Markers / parkedEach; l.Left != kept {
		return fmt.Errorf("%d old markers are left, and %d are of parked messages", l.Left, kept)
	}
	return l.Pace.Wrong()
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(
		l.Wrong(),
		ledger.AtLeast(l.Markers-l.Markers/parkedEach, l.Removed, "markers were removed"),
		l.Pace.Fault(),
	)
}
