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
	// slice is the number of rows that one statement compares, mostDenied the number of contradictions that are
	// reported.
	slice      = 5000
	mostDenied = 100
)

// Deep is the result of comparing inbox rows with their markers and streams, and intents with the markers of their
// causes.
type Deep struct {
	// From is the number of the last row before the comparison, and To the number of the last row
	// that was compared. A later comparison continues after To.
	From, To int64
	// Rows is the number of rows that were compared. Intents is how many of them are intents that were compared with
	// the markers of their causes.
	Rows, Intents int64
	Denied        []sqlstore.Mismatch
	// Rest is the reason why rows after To were not compared; empty if all were.
	Rest string
}

// denials compares up to most rows after a row; see sqlstore.Store.Denials.
type denials func(ctx context.Context, after int64, most int) (sqlstore.Looked, error)

// compareRows compares all rows after from, in slices. A row, its marker and its stream are written in one commit, so
// a single statement always reads them in agreement, and no snapshot must be held for longer than a statement. If a
// slice fails or ctx ends, the result has the slices before it.
func compareRows(ctx context.Context, from int64, within time.Duration, of denials) *Deep {
	d := &Deep{From: from, To: from}
	for d.Rest == "" {
		soon, cancel := context.WithTimeout(ctx, within)
		found, err := of(soon, d.To, slice)
		cancel()
		switch {
		case ctx.Err() != nil:
			d.Rest = "the check was interrupted"
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

// add adds the result of one slice. add stops at the row with which mostDenied contradictions are
// reached.
func (d *Deep) add(found sqlstore.Looked) {
	slices.SortStableFunc(found.Denied, func(a, b sqlstore.Mismatch) int { return cmp.Compare(a.Row, b.Row) })
	found.Denied = slices.CompactFunc(found.Denied, func(a, b sqlstore.Mismatch) bool { return a.Row == b.Row }) // an intent is also a row
	if room := mostDenied - len(d.Denied); len(found.Denied) > room {
		found = sqlstore.Looked{Denied: found.Denied[:room], Last: d.To}
		if room > 0 {
			found.Last = found.Denied[room-1].Row
		}
		d.Rest = fmt.Sprintf("the limit of %d was reached", mostDenied)
	}
	d.Denied, d.To = append(d.Denied, found.Denied...), found.Last
	d.Rows, d.Intents = d.Rows+found.Rows, d.Intents+found.Intents
}

// Command returns the command that continues the comparison after the last compared row.
func (s *Subject) Command() string {
	return s.Policy.Command("check", "--deep", "--consumer", s.Consumer.Name, "--from", fmt.Sprint(s.Facts.Deep.To))
}

// explained reports whether the policy explains a contradiction: without markers, the message of an intent has none;
// and if the policy no longer checks versions, messages that were received while it did take effect without their
// stream.
func (s *Subject) explained(d sqlstore.Mismatch) bool {
	t := s.Consumer.Strategy
	if d.By == sqlstore.MismatchStream {
		return s.Consumer.Version == nil
	}
	return d.By == sqlstore.MismatchCause && d.Marker == 0 && (t.Natural != nil || t.BusinessKey != nil && !t.Marker)
}

// denied returns the answer if rows contradict their records.
func (s *Subject) denied() Answer {
	d := s.Facts.Deep
	first, count := d.Denied[0], counted(int64(len(d.Denied)), "row")
	if d.Rest != "" {
		count = fmt.Sprintf("%s up to row %d", count, d.To)
	}
	return fail("find the program that changes these tables besides Semel: "+s.Policy.Command("messages", "show", fmt.Sprint(first.Row)),
		"records of the same commits contradict %s, although no commit of Semel writes contradictions: row %d is %s, and %s", count, first.Row, admin.StateOf(first.State), contradiction(first))
}

// contradiction describes which record contradicts a row.
func contradiction(d sqlstore.Mismatch) string {
	marker := "it has no marker"
	if d.Marker != 0 {
		marker = "its marker says " + d.Marker.String()
	}
	switch {
	case d.By == sqlstore.MismatchCause:
		return fmt.Sprintf("an intent of message %s, which had no effect: %s", legible.Printable(d.Cause.ID), marker)
	case d.By == sqlstore.MismatchMarker:
		return marker
	case d.Last < 0:
		return "its stream does not exist"
	case d.State == store.StateCompleted:
		return fmt.Sprintf("its stream has only reached version %d", d.Last)
	}
	return fmt.Sprintf("its stream has reached version %d, so nothing blocks it", d.Last)
}

// comparison describes which rows and intents were compared without a contradiction.
func (d *Deep) comparison() string {
	looked := fmt.Sprintf("%d rows", d.Rows)
	if d.From > 0 {
		looked += fmt.Sprintf(" after row %d", d.From)
	}
	looked += " agree with their markers and streams"
	if d.Intents > 0 {
		looked += fmt.Sprintf(", and %s with the markers of their messages", counted(d.Intents, "intent"))
	}
	return looked
}
