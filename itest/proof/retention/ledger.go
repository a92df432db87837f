package retention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// Pace describes the work of the workers before, during and after the removal.
type Pace struct {
	// Took is the duration of the removal in seconds. Batch is the 99th percentile of the durations of the
	// workers' batches, in milliseconds.
	Took  float64 `json:"seconds"`
	Batch float64 `json:"batch_p99_ms"`
	// Before, While and After are the messages per second before, during and after the removal.
	Before float64 `json:"rate_before"`
	While  float64 `json:"rate_while"`
	After  float64 `json:"rate_after"`
	// Fresh is the number of new messages. Copies is the number of duplicates of messages that have a marker. Late is
	// the number of duplicates of messages without a marker that were detected as too old.
	Fresh  int `json:"new_messages"`
	Copies int `json:"copies_known"`
	Late   int `json:"copies_too_old"`
	// Again is the number of copies of old messages that took effect.
	Again int `json:"old_again"`
	// Waits is the number of lines in the server's log about a lock wait or a deadlock.
	Waits int `json:"log_lines_of_locks"`
	ledger.Balance
}

// Wrong returns an error that describes what Semel did wrong, or nil.
func (p Pace) Wrong() error {
	switch {
	case p.Again > 0:
		return fmt.Errorf("%d copies of old messages took effect again", p.Again)
	case p.Waits > 0:
		return fmt.Errorf("the server's log has %d waits for locks, or deadlocks", p.Waits)
	}
	return p.Balance.Wrong()
}

// Fault returns an error if the ledger proves nothing, or nil.
func (p Pace) Fault() error {
	return cmp.Or(
		ledger.AtLeast(100, p.Late, "copies of removed messages"),
		ledger.AtLeast(100, p.Copies, "copies of known messages"),
	)
}

// Ledger is the result for single deleted markers.
type Ledger struct {
	// Markers is the number of old markers. Removed is the number of old markers that the reaper removed. Left is the
	// number of old markers that stay because their messages are parked.
	Markers int `json:"old_markers"`
	Removed int `json:"removed"`
	Left    int `json:"left"`
	// Slice is the 99th percentile of the durations of the calls that remove markers, in milliseconds.
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
