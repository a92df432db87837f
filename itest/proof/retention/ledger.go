package retention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// Pace is the work of the workers during the removal.
type Pace struct {
	// Took is the duration in seconds; Batch is the 99th percentile of the workers' batches,
	// in milliseconds.
	Took  float64 `json:"seconds"`
	Batch float64 `json:"batch_p99_ms"`
	// Before, While and After are messages per second.
	Before float64 `json:"rate_before"`
	While  float64 `json:"rate_while"`
	After  float64 `json:"rate_after"`
	// Fresh are new messages, Copies are copies of known messages, and Late are copies of
	// removed messages that were detected as such.
	Fresh  int `json:"new_messages"`
	Copies int `json:"copies_known"`
	Late   int `json:"copies_too_old"`
	// Again are copies of old messages that took effect.
	Again int `json:"old_again"`
	// Waits are lines of the server's log about a wait for a lock, or a deadlock.
	Waits int `json:"log_lines_of_locks"`
	ledger.Balance
}

// Wrong returns what went wrong, or nil.
func (p Pace) Wrong() error {
	switch {
	case p.Again > 0:
		return fmt.Errorf("%d copies of old messages took effect again", p.Again)
	case p.Waits > 0:
		return fmt.Errorf("the server's log has %d waits for locks, or deadlocks", p.Waits)
	}
	return p.Balance.Wrong()
}

// Fault returns why the ledger is no proof, or nil.
func (p Pace) Fault() error {
	return cmp.Or(
		ledger.AtLeast(100, p.Late, "copies of removed messages"),
		ledger.AtLeast(100, p.Copies, "copies of known messages"),
	)
}

// Ledger is the result for deleted markers.
type Ledger struct {
	// Markers is the number of old markers, Removed of those that the reaper removed, and Left
	// of those that stay because their messages are parked.
	Markers int `json:"old_markers"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	// Slice is the 99th percentile of the reaper's calls, in milliseconds.
	Slice float64 `json:"slice_p99_ms"`
	Pace

	slices []time.Duration
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	if kept := l.Markers / parkedEach; l.Left != kept {
		return fmt.Errorf("%d old markers are left, but %d belong to parked messages", l.Left, kept)
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
