package sqlform

import (
	"bytes"

	"github.com/semel-go/semel/store"
)

// idAside is the first byte of the key of a marker whose id belongs to none of the daily partitions, followed by the
// original key. See AsideKey.
const idAside = 5

// Dated contains statements for a store whose markers are in a table with daily partitions: statements that
// replace the usual statements, and statements that maintain the table.
type Dated struct {
	Begin, Mark, Judge, Look, Marker, KnownMarkers                string
	FirstDue, LastDay, MarkerBytes, Reap                          string
	Aside                                                         string
	Create, CreateAside, CreateReadable                           string
	Hexadecimal, Days, MarkerDays, Wanted, Keeping                string
	CreateDay, AttachDay, RaiseHigh, RaiseLow, Below              string
	Impatience, LockTable, Holds, DropDay, ReapEnded, ReapResults string
	Move, MoveRows, OddlySpelled                                  string
	Lint                                                          string
}

// Moving contains the statements that move the markers of a running consumer from the table that all consumers share
// into a table with daily partitions.
type Moving struct {
	// NewMoving writes the row that records a move. StandIn creates temporary tables with the names of the final table,
	// into which the consumer's processes write markers until the move ends. DaysFrom returns the days for which daily
	// partitions must be created.
	NewMoving, StandIn, DaysFrom string
	// Running returns the open transactions, and Ended reports whether given transactions have ended. ScopesOf returns
	// the numbers of the consumer's sources. Copy copies some markers of a source.
	Running, Ended, ScopesOf, Copy string
	// ByTime creates an index by time for the move. NoMoreByTime drops the index, even if the index is
	// incomplete.
	ByTime, NoMoreByTime string
	// The end of a move: HoldOff prevents other processes from writing markers. CopyOutside and Settle copy
	// the remaining markers. TakeName gives the table its final name, and RenameDay gives a daily partition
	// its final name. EndMoving ends the move, together with MoveRows of Dated.
	HoldOff, CopyOutside, Settle, TakeName, RenameDay, EndMoving string
	// Fence makes the table that all consumers share reject new markers of the consumer, and Fenced reports whether
	// Fence is in effect. Left reports whether markers of the consumer remain in the shared table. Clear removes some
	// of these markers. Cleared records that all of them are removed.
	Impatient, Fence, Fenced, Left, Clear, Cleared string
}

// WithDays returns p with the statements in d, which use a table with daily partitions. Statements about the whole
// schema come from the parameter shared, which contains the statements of a store without daily partitions.
func (p *Postgres) WithDays(d *Dated, shared *Postgres) *Postgres {
	own := *p
	own.Begin, own.Mark, own.Judge, own.Look, own.Marker, own.KnownMarkers = d.Begin, d.Mark, d.Judge, d.Look, d.Marker, d.KnownMarkers
	own.FirstDue, own.LastDay, own.MarkerBytes, own.Reap = d.FirstDue, d.LastDay, d.MarkerBytes, d.Reap
	own.BeginClaims, own.BeginQueuedClaims = "", "" // these statements check less than d.Look
	own.Lint, own.LintRows = shared.Lint, shared.LintRows
	own.Index, own.Unindexed, own.Unindex, own.Reaper = shared.Index, shared.Unindexed, shared.Unindex, shared.Reaper
	return &own
}

// The numbers that Dated.Judge returns in place of an outcome.
const (
	below   = -1
	ahead   = -2
	unready = -3
	// standsAside is added to the outcome of a marker that is stored under AsideKey.
	standsAside = 256
)

// Answer is the store's answer (new, duplicate, conflict) for a message whose marker is in a table with daily
// partitions.
type Answer struct {
	store.Verdict
	// Aside means that the marker is stored under AsideKey.
	Aside bool
	// Unready means that the time in the id is later than all daily partitions, and that the partition of the next day
	// is missing.
	Unready bool
}

// Judged converts a stored marker to the answer for a message.
func (m Marker) Judged(c Crypt, asked *Mark) Answer {
	old := store.Verdict{Kind: store.Old}
	switch {
	case m.Outcome == below:
		return Answer{Verdict: old}
	case m.Outcome == ahead, m.Outcome == unready:
		old.Ahead = true
		return Answer{Verdict: old, Unready: m.Outcome == unready}
	case m.Outcome >= standsAside:
		m.Outcome -= standsAside
		return Answer{Verdict: m.Verdict(c, asked), Aside: true}
	}
	return Answer{Verdict: m.Verdict(c, asked)}
}

// SetAside changes the key of a marker to AsideKey.
func (m *Mark) SetAside() {
	if len(m.Key) == 0 || m.Key[0] != idAside {
		m.Key = AsideKey(m.Key)
	}
}

// AsideKey returns the key of a marker whose id belongs to none of the daily partitions.
func AsideKey(key []byte) []byte { return append([]byte{idAside}, key...) }

// InnerKey is the inverse of AsideKey. Any other key is returned unchanged.
func InnerKey(key []byte) []byte {
	if len(key) > 0 && key[0] == idAside {
		return bytes.Clone(key[1:])
	}
	return key
}
