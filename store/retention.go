package store

import (
	"context"
	"time"

	"github.com/semel-go/semel/source"
)

// Retention contains the retention settings of a consumer.
type Retention struct {
	Consumer string
	// Keep is how long markers and the rows of ended messages are kept after their last change; 0
	// means for ever.
	Keep time.Duration
	// Bodies is how long the bodies of completed and discarded rows are kept; 0 means as long as the
	// row.
	Bodies time.Duration
	// Horizon is the latest time, after a message was written, at which a copy of it can be delivered;
	// 0 if unknown. While it is longer than Keep, nothing is removed. Why describes how it was
	// determined.
	Horizon time.Duration
	Why     string
	// Off disables the reaper in all processes.
	Off bool
}

// StoredRetention contains the stored retention settings and progress of a consumer. Times are by the
// store's clock, except Oldest.
type StoredRetention struct {
	Retention
	// Progress is the time of the last call of Reaper.Progressed. Held is the lane that is furthest
	// behind. Oldest is the broker's timestamp of its oldest unsettled record, or, if the lane had
	// settled all records, the time of its last report. They are empty and zero if no lane is
	// behind by more than LaneTimeout.
	Progress time.Time
	Held     string
	Oldest   time.Time
	// Cutoff is Keep before the earliest of now, Progress and the lanes' progress. Markers whose last
	// change is before Cutoff may be removed. Cutoff is zero if Keep is 0. Markers before Low may
	// have been removed already.
	Cutoff, Low time.Time
	// First is the time of the oldest marker that may be removed. A store that would have to read all
	// markers for that returns the cutoff of its last complete pass. First is zero if there are none.
	// Cutoff minus First is the lag of the reaper.
	First time.Time
	// LastDay is the number of markers written in the last day, rounded to a hundred thousand and
	// estimated from a sample if there are many. MarkerBytes is the estimated size of one marker in
	// tables and indexes; 0 if unknown.
	LastDay     int64
	MarkerBytes int64
	// Days is set for a consumer whose markers are partitioned by day.
	Days MarkerDays
}

// MarkerDays describes the daily partitions of a store with Limits.PartitionedBy. MarkerDays is
// zero for other stores.
type MarkerDays struct {
	// Kept is the number of partitions, including those created ahead, and First is the start of the
	// first. Due is the number of partitions that are entirely before the cutoff and still exist,
	// because they contain messages that have not ended or have not been dropped yet.
	Kept, Due int64
	First     time.Time
}

// MaxClockSkew is how far a message's timestamp may be ahead of the store's clock if the message is checked
// by its age.
const MaxClockSkew = time.Hour

// LaneTimeout is how long a lane may be silent or behind before it is reported.
const LaneTimeout = 5 * time.Minute

// Reaping is the argument of Reaper.Reap.
type Reaping struct {
	Consumer string
	// Most is the maximum number of due markers that the call examines and of bodies that it removes.
	Most int
	// Rest is the minimum time between two complete passes in a store whose passes read all markers. A
	// call in between does nothing. Other stores ignore it.
	Rest time.Duration
	// After is Reaped.Next of the previous call of the pass; zero starts a pass. With After.Done only
	// bodies are left.
	After ReapMark
	// DryRun counts what a call after Advance would remove, without a change.
	DryRun bool
}

// ReapMark is a position in a pass of the reaper. Only the store interprets it.
type ReapMark struct {
	Scope, At int64
	ID        string
	// Block is the position in a scan of a table with Blocks blocks; Left is the number of blocks that
	// are still to be scanned.
	Block, Blocks, Left int64
	Done                bool
}

// Reaped is the result of Reaper.Reap.
type Reaped struct {
	// Markers, Rows and Bodies count what was removed. Kept counts markers before the cutoff that stay
	// because their messages have not ended, or ended recently.
	Markers, Rows, Bodies, Kept int64
	// Next is the position of the next call. Next.Done reports that all markers were examined.
	Next ReapMark
	// Days is the number of dropped daily partitions. Markers does not count their markers. See
	// Limits.PartitionedBy.
	Days int64
	// Elsewhere reports that another process reaps for this consumer. Nothing was done.
	Elsewhere bool
}

// Add adds the result of call o to r, the sum of the earlier calls of the pass, and reports whether the
// pass is complete: all markers were examined and the call removed fewer bodies than it may. A dry run
// counts the same bodies in each call, so Add counts them once, and the dry run ends with the markers.
func (r *Reaped) Add(o Reaping, call Reaped) (over bool) {
	r.Markers, r.Rows, r.Kept, r.Days = r.Markers+call.Markers, r.Rows+call.Rows, r.Kept+call.Kept, r.Days+call.Days
	if !o.DryRun || o.After == (ReapMark{}) {
		r.Bodies += call.Bodies
	}
	r.Next, r.Elsewhere = call.Next, call.Elsewhere
	return call.Elsewhere || call.Next.Done && (o.DryRun || call.Bodies < int64(o.Most))
}

// Reaper is implemented by a store that removes old markers and rows. Reaper stores the retention settings
// and the progress of each consumer.
//
// A marker may be removed if its last change is before the cutoff, its message was applied, discarded or
// dead-lettered, and its identity has no row. Before a removal the cutoff is committed as the scope's
// low-water mark. A fresh mark whose Age is before the low-water mark gets the verdict Old, so that a copy
// of a message with a removed marker is not applied again. A mark whose Age is more than MaxClockSkew ahead
// of the store's clock also gets Old, with Verdict.Ahead. A new scope of a consumer starts with the latest
// low-water mark of the consumer's other scopes.
type Reaper interface {
	// Retain stores the retention settings of a consumer and replaces earlier ones. The progress of a new
	// consumer is set to now. semel.ErrState: the consumer's markers are partitioned by day and this
	// store does not read them; Removed returns it, too.
	Retain(ctx context.Context, r Retention) error
	// Progressed records that the consumer runs, and the progress of lanes. Lanes that are not named keep
	// their last report; the process that owns a lane reports it. A lane without reports holds the
	// cutoff back, even if it had settled all records, because it may have new records since.
	Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error
	// ForgetLane removes a lane that will never be read again and would hold the cutoff back for ever.
	// semel.ErrState: the consumer has no such lane.
	ForgetLane(ctx context.Context, consumer, lane string, a Act) error
	// Retentions returns the stored retention of a consumer, or of all consumers with "", by name.
	Retentions(ctx context.Context, consumer string) ([]StoredRetention, error)
	// Removed returns the time before which markers of the consumer may have been removed: the latest
	// low-water mark of its scopes, or zero. Removed is cheap.
	Removed(ctx context.Context, consumer string) (before time.Time, err error)
	// Advance raises the low-water marks of the consumer's scopes to its cutoff and returns the cutoff;
	// zero if nothing may be removed. semel.ErrState: nothing may be removed because Keep is 0, Off is
	// set, or the horizon is longer than Keep.
	Advance(ctx context.Context, consumer string) (time.Time, error)
	// Reap removes some of the markers and rows below the low-water marks, in its own transaction, which
	// waits for no lock.
	Reap(ctx context.Context, r Reaping) (Reaped, error)
}
