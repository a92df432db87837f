package sqlform

import (
	"bytes"

	"github.com/semel-go/semel/store"
)

// idAside is the first byte of a key of which the rest is another: that of an id outside
// of the days which a table of markers keeps. See Dated.
const idAside = 5

// Dated are those statements that a store has in place of the same ones if its markers lie
// in a table of days, and what is done to that table beside them.
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

// Moving are the statements that move markers of a consumer from the table of all into a
// table of days while it works.
type Moving struct {
	// NewMoving makes the row of a move, and StandIn the relations by whose names the
	// consumer's processes mark until it ends; DaysFrom are days to be made.
	NewMoving, StandIn, DaysFrom string
	// Running and Ended tell which transactions are under way, and whether they have ended.
	// ScopesOf are the consumer's; Copy copies some markers of one.
	Running, Ended, ScopesOf, Copy string
	// ByTime makes an index by time for it, and NoMoreByTime removes that, whole or not.
	ByTime, NoMoreByTime string
	// The end of a move: HoldOff keeps others from marking, CopyOutside and Settle copy what
	// Copy left, TakeName gives the table its name and RenameDay a day its own; EndMoving
	// has it looked at, with MoveRows of Dated.
	HoldOff, CopyOutside, Settle, TakeName, RenameDay, EndMoving string
	// Fence keeps anybody from marking in the table of all, where Fenced tells whether it
	// stands; Left tells whether anything was left there, Clear removes some of it, and
	// Cleared says that all is gone.
	Impatient, Fence, Fenced, Left, Clear, Cleared string
}

// WithDays are the statements with those of a table of days in their places. What is about
// the schema as a whole is of, the statements of the store without such a table.
func (p *Postgres) WithDays(d *Dated, of *Postgres) *Postgres {
	own := *p
	own.Begin, own.Mark, own.Judge, own.Look, own.Marker, own.KnownMarkers = d.Begin, d.Mark, d.Judge, d.Look, d.Marker, d.KnownMarkers
	own.FirstDue, own.LastDay, own.MarkerBytes, own.Reap = d.FirstDue, d.LastDay, d.MarkerBytes, d.Reap
	own.BeginClaims, own.BeginQueuedClaims = "", "" // Look asks more than they do
	own.Lint, own.LintRows = of.Lint, of.LintRows
	own.Index, own.Unindexed, own.Unindex, own.Reaper = of.Index, of.Unindexed, of.Unindex, of.Reaper
	return &own
}

// What a judge of a table of days says in place of an outcome.
const (
	below   = -1
	ahead   = -2
	unready = -3
	// standsAside is added to the outcome of a marker that stands aside.
	standsAside = 256
)

// Answer is what a judge of a table of days says of a mark.
type Answer struct {
	store.Verdict
	// Aside: the marker stands under AsideKey.
	Aside bool
	// Unready: the id lies ahead of the days that are made, and none is for tomorrow.
	Unready bool
}

// Judged is the answer to a mark.
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

// SetAside has a mark stand under the key of what lies outside of the days.
func (m *Mark) SetAside() {
	if len(m.Key) == 0 || m.Key[0] != idAside {
		m.Key = AsideKey(m.Key)
	}
}

// AsideKey is the key under which a marker stands aside.
func AsideKey(key []byte) []byte { return append([]byte{idAside}, key...) }

// InnerKey undoes AsideKey; any other is as it is.
func InnerKey(key []byte) []byte {
	if len(key) > 0 && key[0] == idAside {
		return bytes.Clone(key[1:])
	}
	return key
}
