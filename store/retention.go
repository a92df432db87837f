package store

import (
	"context"
	"time"

	"github.com/semel-go/semel/source"
)

// Retention is the retention policy of a consumer: how long the store keeps markers, rows and bodies.
type Retention struct {
	Consumer string
	// Keep is how long markers, and the rows of ended messages, are kept after their last change; 0 means
	// forever.
	Keep time.Duration
	// Bodies is how long the bodies of completed and discarded rows are kept; 0 means as long as the row
	// exists.
	Bodies time.Duration
	// Horizon is the longest time after a message was written in which a copy of the message can be delivered; 0 if
	// unknown. While Horizon is longer than Keep, no markers are removed. Why describes where the value comes from.
	Horizon time.Duration
	Why     string
	// Off stops the removal of old markers, rows and bodies in all processes.
	Off bool
}

// StoredRetention is the stored retention policy of a consumer, and the progress of the removal of old data. Times are
// by the store's clock, except Oldest.
type StoredRetention struct {
	Retention
	// Progress is the time of the last call of Reaper.Progressed. Held is the lane that is furthest behind.
	// Oldest is the broker's timestamp of the oldest unsettled record in that lane. If the lane had settled
	// all records, Oldest is the time of its last report. Held and Oldest are empty if no lane is behind by
	// more than five minutes.
	Progress time.Time
	Held     string
	Oldest   time.Time
	// Cutoff is the earliest of now, Progress and the progress of the lanes, minus Keep. Markers whose last
	// change is before Cutoff may be removed. Cutoff is zero if Keep is 0. Markers from before Low may have
	// been removed already.
	Cutoff, Low time.Time
	// First is the time of the oldest marker that may be removed, or zero if there is none. In a store that would have
	// to read all markers to find this time, First is the cutoff of the last complete pass. Cutoff minus First is how
	// late the removal of markers is.
	First time.Time
	// LastDay is the number of markers that were written in the last day. A large number is estimated from a sample and
	// rounded to a hundred thousand. MarkerBytes is the estimated size of one marker in tables and indexes; 0 if
	// unknown.
	LastDay     int64
	MarkerBytes int64
	// Days describes the daily partitions of a store with Limits.PartitionedBy; zero for other stores. Kept is
	// the number of partitions, including those for later days. First is the start of the first partition. Due
	// is the number of partitions that are entirely before the cutoff and still exist: they contain messages
	// that have not ended, or they have not been dropped yet.
	Days struct {
		Kept, Due int64
		First     time.Time
	}
}

// MaxClockSkew is how far the timestamp of a message may be ahead of the store's clock, if the age of the
// message is checked.
const MaxClockSkew = time.Hour

// Reaping is the argument of Reaper.Reap.
type Reaping struct {
	Consumer string
	// Most is the largest number of old markers that the call examines, and the largest number of bodies that
	// it removes.
	Most int
	// Rest is the shortest time between two complete passes. Rest is for a store whose passes read all markers: a call
	// of Reap before Rest has passed does nothing. Other stores ignore Rest.
	Rest time.Duration
	// After is Reaped.Next of the previous call in the pass; the zero value starts a new pass. If After.Done
	// is true, only bodies are left.
	After ReapMark
	// DryRun counts the data that a call after Advance would remove, and removes nothing.
	DryRun bool
}

// ReapMark is a position in a pass that removes old markers. Only the store knows the meaning of its fields.
type ReapMark struct {
	Scope, At int64
	ID        string
	// Block is the position in a scan of a table with Blocks blocks. Left is the number of blocks that must
	// still be scanned.
	Block, Blocks, Left int64
	Done                bool
}

// Reaped is the result of Reaper.Reap.
type Reaped struct {
	// Markers, Rows and Bodies are the numbers of removed markers, rows and bodies. Kept is the number of
	// markers from before the cutoff that were not removed, because their messages have not ended or ended
	// only recently.
	Markers, Rows, Bodies, Kept int64
	// Next is the position for the next call. Next.Done is true if all markers were examined.
	Next ReapMark
	// Days is the number of dropped daily partitions. The markers in dropped partitions are not counted in Markers. See
	// Limits.PartitionedBy.
	Days int64
	// Elsewhere is true if the call did nothing because another process is removing data of the same consumer.
	Elsewhere bool
}

// Add adds the result of one call of Reap, the parameter call, to r, the sum of the earlier calls in the pass. The
// parameter o is the argument of that call of Reap. The result over is true if the pass is complete: all markers were
// examined, and the call removed fewer bodies than it may. A dry run counts the same bodies in each call, so Add adds
// the bodies only once, and a dry run is complete when all markers were examined.
func (r *Reaped) Add(o Reaping, call Reaped) (over bool) {
	r.Markers, r.Rows, r.Kept, r.Days = r.Markers+call.Markers, r.Rows+call.Rows, r.Kept+call.Kept, r.Days+call.Days
	if !o.DryRun || o.After == (ReapMark{}) {
		r.Bodies += call.Bodies
	}
	r.Next, r.Elsewhere = call.Next, call.Elsewhere
	return call.Elsewhere || call.Next.Done && (o.DryRun || call.Bodies < int64(o.Most))
}

// Reaper is implemented by a store that removes old markers and rows. A Reaper stores the retention policy and the
// progress of each consumer.
//
// A marker may be removed if its last change is before the cutoff, its message was applied, discarded or dead-lettered,
// and its identity has no row. Before a removal, the cutoff is committed as the low-water mark of the scope (the number
// of a consumer, source and generation). If a message has no marker and its Age is before the low-water mark, the
// store's answer is Old, so that a copy of a message whose marker was removed is not applied again. If the Age is more
// than MaxClockSkew ahead of the store's clock, the answer is also Old, with Verdict.Ahead. A new scope of a consumer
// starts with the latest low-water mark of the consumer's other scopes.
type Reaper interface {
	// Retain stores the retention policy of a consumer, and replaces an earlier policy. The progress of a new consumer
	// is set to now. The error is semel.ErrState if the consumer's markers are in daily partitions that this store does
	// not read; Removed returns the same error.
	Retain(ctx context.Context, r Retention) error
	// Progressed records that the consumer runs, and the progress of lanes. The process that has a lane reports it; a
	// lane that is not in lanes keeps its last report. A lane without new reports keeps the cutoff from advancing, even
	// if all its records were acked, because the lane may have got new records since.
	Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error
	// ForgetLane removes a lane that will never be read again. A lane that is not removed would keep the cutoff from
	// advancing forever. If the consumer has no lane with the given name, the error is semel.ErrState.
	ForgetLane(ctx context.Context, consumer, lane string, a Act) error
	// Retentions returns the stored retention of a consumer. If consumer is "", Retentions returns the stored
	// retentions of all consumers, sorted by name.
	Retentions(ctx context.Context, consumer string) ([]StoredRetention, error)
	// Removed returns the time before which markers of the consumer may have been removed: the latest
	// low-water mark of its scopes, or zero. A call of Removed costs little.
	Removed(ctx context.Context, consumer string) (before time.Time, err error)
	// Advance raises the low-water marks of the consumer's scopes to the cutoff and returns the cutoff, or zero if no
	// marker may be removed. The error is semel.ErrState if no marker may be removed because Keep is 0, Off is set, or
	// Horizon is longer than Keep.
	Advance(ctx context.Context, consumer string) (time.Time, error)
	// Reap removes some of the markers and rows that are older than the low-water marks. Reap uses a transaction of its
	// own, which waits for no lock.
	Reap(ctx context.Context, r Reaping) (Reaped, error)
}
