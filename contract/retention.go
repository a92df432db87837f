package contract

import (
	"context"
	"time"
)

// Retention is what a consumer's policy says of how long its records are kept.
type Retention struct {
	Consumer string
	// Keep is how long a marker is kept, and the row of a message that has ended, each
	// from when it became so; 0: for ever.
	Keep time.Duration
	// Bodies is after how long the bodies of rows are removed that are completed or
	// discarded; 0: with the row.
	Bodies time.Duration
	// Horizon is how late a copy can come, as far as is known; 0: nothing is. While it is
	// longer than Keep nothing is removed. Why says what it is made of, for people.
	Horizon time.Duration
	Why     string
	// Off switches the reaper off, whoever runs it.
	Off bool
}

// LaneAge is how far a lane is.
type LaneAge struct {
	// Lane is the lane's name, the same in every process and for ever.
	Lane string
	// Oldest is the broker's time of the oldest record of the lane that is not settled,
	// or not read; zero: everything is.
	Oldest time.Time
}

// StoredRetention is a consumer's retention as it stands in the store. Times are by
// the store's clock, but Oldest.
type StoredRetention struct {
	Retention
	// Progress is when the consumer last recorded its progress. Held is the lane that is
	// the furthest behind, and Oldest the broker's time of its oldest record, or, if it had
	// settled everything, when that was told last; empty and zero if no lane is behind by
	// more than LaneTimeout.
	Progress time.Time
	Held     string
	Oldest   time.Time
	// Cutoff is Keep before the earliest of now, Progress, and where each lane is: what
	// became so before may be removed; zero with Keep 0. Low is up to where it may have
	// been.
	Cutoff, Low time.Time
	// First is from when on markers may stand that were written before Cutoff and may be
	// removed: the time of the oldest one or, in a store that does not know it without
	// reading all of them, up to where its last whole pass removed them; zero if there are
	// none. So Cutoff less First is how far the reaper is behind.
	First time.Time
	// LastDay is how many markers were written in the last day, to a hundred thousand,
	// estimated from a part of them where there are many; MarkerBytes is what one takes in the tables and indexes, as far as the
	// database estimates it, 0 if it does not.
	LastDay     int64
	MarkerBytes int64
	// Days is of a consumer whose markers are kept by day.
	Days MarkerDays
}

// MarkerDays are the days of markers that a PartitionedMarkers has; zero of any other store.
type MarkerDays struct {
	// Kept are how many days stand, with those made ahead, and First is the begin of the
	// first. Due are how many of them are past the cutoff as a whole, and stay because they
	// hold what has not ended, or wait to be dropped.
	Kept, Due int64
	First     time.Time
}

// MaxClockSkew is how far ahead of the store's clock a message may be dated that is judged by
// its age.
const MaxClockSkew = time.Hour

// LaneTimeout is for how long a lane may be silent, or behind, before that is told.
const LaneTimeout = 5 * time.Minute

// Reaping says what one call of Reap removes.
type Reaping struct {
	Consumer string
	// Most is how many markers it looks at that are due, and how many bodies it removes at
	// most.
	Most int
	// Rest is for how long after a whole pass no other begins, in a store of which a pass
	// reads all markers: the call is over at once. Others look at what is due and do not
	// rest.
	Rest time.Duration
	// After is where the last call of the same pass has come to; zero: it begins;
	// After.Done: all markers of the pass were looked at, and only bodies are left.
	After ReapMark
	// DryRun counts what a call after Advance would remove, and changes nothing.
	DryRun bool
}

// ReapMark is a place in a pass of the reaper; only the store reads it.
type ReapMark struct {
	Scope, At int64
	ID        string
	// Block is where a walk through a table of so many Blocks is, Left how many it has still
	// to look at.
	Block, Blocks, Left int64
	Done                bool
}

// Reaped is what became of one call of Reap.
type Reaped struct {
	// Markers, Rows and Bodies are what was removed; Kept are markers before the
	// cutoff that stay because their messages have not ended, or not long ago.
	Markers, Rows, Bodies, Kept int64
	// Next continues the pass; Next.Done: all markers were looked at.
	Next ReapMark
	// Days are how many days were dropped with all of their markers, which Markers does not
	// count. See PartitionedMarkers.
	Days int64
	// Elsewhere: another process reaps for this consumer now; nothing was done.
	Elsewhere bool
}

// Add adds what the call o did to r, the sum of the calls of its pass before, and reports
// whether the pass is over. It is when all markers were looked at and the call found fewer
// bodies than it may remove; one that only counts meets the same bodies in each call, so
// they count once, and it ends with the markers.
func (r *Reaped) Add(o Reaping, call Reaped) (over bool) {
	r.Markers, r.Rows, r.Kept, r.Days = r.Markers+call.Markers, r.Rows+call.Rows, r.Kept+call.Kept, r.Days+call.Days
	if !o.DryRun || o.After == (ReapMark{}) {
		r.Bodies += call.Bodies
	}
	r.Next, r.Elsewhere = call.Next, call.Elsewhere
	return call.Elsewhere || call.Next.Done && (o.DryRun || call.Bodies < int64(o.Most))
}

// Reaper is an optional ability of a store: to keep how long the records of a consumer
// are kept, how far the consumer is, and to remove what may be removed.
//
// A marker may be removed when it was written before the cutoff, its message has taken
// effect, was discarded or dead-lettered, and no row of its identity is left. Before
// anything is removed the cutoff is committed, as the scope's low-water mark; a mark with
// an Age before it is answered with Old if it is fresh, so that no copy of what may have
// been removed runs as if it were new; so is one whose Age is more than MaxClockSkew ahead of
// the store's clock (Verdict.Ahead). A new scope of a consumer begins at the latest
// low-water mark of its others.
type Reaper interface {
	// Retain keeps what the policy says; the last call counts. A consumer that is not
	// known yet has made progress now. semel.ErrState: the consumer's markers are kept by
	// day, and this store does not look there; Removed says so, too.
	Retain(ctx context.Context, r Retention) error
	// Progressed records that the consumer works, and how far each lane is. Lanes that
	// are not named stay as they were; whoever owns them names them. The clock of each lane
	// stands still while nobody does, also of one that had settled everything: what came
	// since then, nobody knows.
	Progressed(ctx context.Context, consumer string, lanes []LaneAge) error
	// ForgetLane removes what is recorded of a lane that will never be read again, which
	// would hold the cutoff back for ever. semel.ErrState: the consumer has no such lane.
	ForgetLane(ctx context.Context, consumer, lane string, a Act) error
	// Retentions returns what stands of a consumer, or with "" of all, by name.
	Retentions(ctx context.Context, consumer string) ([]StoredRetention, error)
	// Removed is up to where markers of the consumer may have been removed: the latest of its
	// scopes' low-water marks; zero: none was. It is cheap.
	Removed(ctx context.Context, consumer string) (before time.Time, err error)
	// Advance raises the low-water marks of the consumer's scopes to its cutoff and
	// returns it; zero: nothing may be removed. An error that wraps semel.ErrState says
	// why not: Keep is 0, Off is set, or the horizon is longer.
	Advance(ctx context.Context, consumer string) (time.Time, error)
	// Reap removes what is below the low-water marks, some at a time, in a transaction of
	// its own that waits for no lock.
	Reap(ctx context.Context, r Reaping) (Reaped, error)
}

// PartitionedMarkers is an optional ability of a Reaper that keeps the markers of one consumer by
// day, by the time that ids carry, and removes a day at once. Its days are made ahead by
// Retain, Progressed and Advance. A mark that asks whether its message may run and whose id
// is older than the days that are kept, or from a day that is not made yet, is not written
// and answered with Old, unless something is known of it; any other mark is written, and
// stays when days go.
type PartitionedMarkers interface {
	Reaper
	IdentityFitter // which refuses ids that do not carry a time
	// PartitionedBy is the kind of the ids, as a policy file names it: "uuidv7"; empty
	// if the store keeps no days.
	PartitionedBy() string
}

// RecordAges is a Source that knows how old the records are that are not settled.
type RecordAges interface {
	// Ages tells of each lane that this process has how far it is. all is false while
	// that is not known of one of them, such as before the first record of a lane that
	// was just given. It does not wait, and is called at any time.
	Ages() (lanes []LaneAge, all bool)
}

// Horizon is how late a broker can deliver a record again.
type Horizon struct {
	// Late is how long after it was written; Unlimited: there is no end to it.
	Late      time.Duration
	Unlimited bool
	// Why says in a few words what it is made of: "topic payments: retention.ms 7d".
	Why string
}

// HorizonReporter is a Source that knows how late its broker can deliver a record again. The
// engine asks before the first Fetch, and once an hour.
type HorizonReporter interface {
	Horizon(ctx context.Context) (Horizon, error)
}
