package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

const (
	// slice is how many rows are looked at in a statement, mostDenied how many are named.
	slice      = 5000
	mostDenied = 100
)

// Deep is what is found by looking at rows, their markers and streams, and intents.
type Deep struct {
	// From is the number of the row behind which it began, To that of the last one that was
	// looked at: who goes on behind it finds what is left.
	From, To int64
	// Rows are as many that were looked at, Intents as many among them that were compared
	// with what the markers say of their causes.
	Rows, Intents int64
	Denied        []sqlstore.Mismatch
	// Rest says why rows behind To were not looked at; empty: all were.
	Rest string
}

// denials looks at a slice of rows; see sqlstore.Store.Denials.
type denials func(ctx context.Context, after int64, most int) (sqlstore.Looked, error)

// deeply looks at the rows behind one, slice by slice: a row, its marker and its stream are
// written in one commit, so that they never say different things in one statement, and no
// snapshot is held for longer. Where a slice fails, or ctx ends, those before it stand.
func deeply(ctx context.Context, from int64, within time.Duration, of denials) *Deep {
	d := &Deep{From: from, To: from}
	for d.Rest == "" {
		soon, cancel := context.WithTimeout(ctx, within)
		found, err := of(soon, d.To, slice)
		cancel()
		switch {
		case ctx.Err() != nil:
			d.Rest = "it was interrupted"
		case err != nil:
			d.Rest = plain(err)
		case found.Rows > 0:
			d.add(found)
		}
		if err == nil && found.Rows < slice {
			break
		}
	}
	return d
}

// add takes a slice, up to the row with which there are as many as are named.
func (d *Deep) add(found sqlstore.Looked) {
	slices.SortStableFunc(found.Denied, func(a, b sqlstore.Mismatch) int { return cmp.Compare(a.Row, b.Row) })
	found.Denied = slices.CompactFunc(found.Denied, func(a, b sqlstore.Mismatch) bool { return a.Row == b.Row }) // an intent is a row, too
	if room := mostDenied - len(d.Denied); len(found.Denied) > room {
		found = sqlstore.Looked{Denied: found.Denied[:room], Last: d.To}
		if room > 0 {
			found.Last = found.Denied[room-1].Row
		}
		d.Rest = fmt.Sprintf("%d were found", mostDenied)
	}
	d.Denied, d.To = append(d.Denied, found.Denied...), found.Last
	d.Rows, d.Intents = d.Rows+found.Rows, d.Intents+found.Intents
}

// Command goes on where it ended.
func (s *Subject) Command() string {
	return fmt.Sprintf("semel check --deep --consumer %s --from %d --config %s", s.Consumer.Name, s.Facts.Deep.To, s.Policy.File)
}

// explained reports whether the policy explains what a row is denied by: where no markers are
// written an intent's message has none, and where versions are not guarded what was received
// while they were takes effect without its stream.
func (s *Subject) explained(d sqlstore.Mismatch) bool {
	t := s.Consumer.Strategy
	if d.By == sqlstore.MismatchStream {
		return s.Consumer.Version == nil
	}
	return d.By == sqlstore.MismatchCause && d.Marker == 0 && (t.Natural != nil || t.BusinessKey != nil && !t.Marker)
}

// denied is the answer where rows are denied.
func (s *Subject) denied() Answer {
	d := s.Facts.Deep
	first, count := d.Denied[0], counted(int64(len(d.Denied)), "row")
	if d.Rest != "" {
		count = fmt.Sprintf("up to row %d %s", d.To, count)
	}
	return fail(fmt.Sprintf("find out what wrote there beside Semel: semel messages show %d --config %s", first.Row, s.Policy.File),
		"%s and other records of the same commits say different things, which no commit of Semel's writes: row %d is %s, and %s", count, first.Row, admin.StateOf(first.State), against(first))
}

// against is what speaks against a row.
func against(d sqlstore.Mismatch) string {
	marker := "there is no marker of it"
	if d.Marker != 0 {
		marker = "its marker says " + d.Marker.String()
	}
	switch {
	case d.By == sqlstore.MismatchCause:
		return fmt.Sprintf("an intent of message %s, which has not taken effect: %s", legible.Printable(d.Cause.ID), marker)
	case d.By == sqlstore.MismatchMarker:
		return marker
	case d.Last < 0:
		return "its stream has not begun"
	case d.State == store.StateCompleted:
		return fmt.Sprintf("its stream has come to version %d only", d.Last)
	}
	return fmt.Sprintf("its stream has come to version %d, behind which it waits no more", d.Last)
}

// compared says what a deep look compared and found alike.
func (d *Deep) compared() string {
	looked := fmt.Sprintf("%d rows", d.Rows)
	if d.From > 0 {
		looked += fmt.Sprintf(" behind row %d", d.From)
	}
	looked += " each says what its marker and its stream say"
	if d.Intents > 0 {
		looked += fmt.Sprintf(", and each of %s what its message's marker says", counted(d.Intents, "intent"))
	}
	return looked
}
