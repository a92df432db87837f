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
	// slice is the number of rows that one statement compares. mostDenied is the maximum number of reported
	// contradictions.
	slice      = 5000
	mostDenied = 100
)

// Deep is the result of a deep check, which compares inbox rows with their markers and streams. The deep
// check also compares intents with the markers of the messages that caused the intents.
type Deep struct {
	// From is the row number after which the comparison started. To is the number of the last compared row. The
	// next comparison starts after the row number To.
	From, To int64
	// Rows is the number of compared rows. Intents is the number of compared rows that are intents. Intents were
	// also compared with the markers of the messages that caused the intents.
	Rows, Intents int64
	Denied        []sqlstore.Mismatch
	// Rest is why rows after To were not compared; empty if all rows were compared.
	Rest string
}

// A function of type compareFunc compares the rows whose numbers are greater than the parameter after. The
// parameter most limits the number of rows; see sqlstore.Store.Denials.
type compareFunc func(ctx context.Context, after int64, most int) (sqlstore.Looked, error)

// compareRows compares all rows whose number is greater than the parameter from, one slice of rows per
// statement. A row, its marker and its stream are written in one transaction, so a single statement reads
// row, marker and stream in the same state. compareRows therefore needs no snapshot that spans several
// statements. If a slice fails or ctx ends, the result covers the earlier slices.
func compareRows(ctx context.Context, from int64, within time.Duration, of compareFunc) *Deep {
	d := &Deep{From: from, To: from}
	for d.Rest == "" {
		soon, cancel := context.WithTimeout(ctx, within)
		found, err := of(soon, d.To, slice)
		cancel()
		switch {
		case ctx.Err() != nil:
			d.Rest = "the check was interrupted"
		case err != nil:
			d.Rest = singleLine(err)
		case found.Rows > 0:
			d.add(found)
		}
		if err == nil && found.Rows < slice {
			break
		}
	}
	return d
}

// If the number of contradictions reaches mostDenied, add stops at that row.
func (d *Deep) add(found sqlstore.Looked) {
	slices.SortStableFunc(found.Denied, func(a, b sqlstore.Mismatch) int { return cmp.Compare(a.Row, b.Row) })
	found.Denied = slices.CompactFunc(found.Denied, func(a, b sqlstore.Mismatch) bool { return a.Row == b.Row }) // an intent with two contradictions counts as one row
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

// isExplained reports whether the policy explains a contradiction. If the consumer writes no
// markers, the message that caused an intent has no marker. If the policy no longer checks versions, messages
// that were received with versions were applied without updating the stream.
func (s *Subject) isExplained(d sqlstore.Mismatch) bool {
	t := s.Consumer.Strategy
	if d.By == sqlstore.MismatchStream {
		return s.Consumer.Version == nil
	}
	return d.By == sqlstore.MismatchCause && d.Marker == 0 && (t.Natural != nil || t.BusinessKey != nil && !t.Marker)
}

// checkMismatches returns the answer for rows that contradict their markers or streams.
func (s *Subject) checkMismatches() Answer {
	d := s.Facts.Deep
	first, count := d.Denied[0], formatCount(int64(len(d.Denied)), "row")
	if d.Rest != "" {
		count = fmt.Sprintf("%s up to row %d", count, d.To)
	}
	return fail("find the program that changes these tables besides Semel: "+s.Policy.Command("messages", "show", fmt.Sprint(first.Row)),
		"records of the same commits contradict %s, although no commit of Semel writes contradictions: row %d is %s, and %s", count, first.Row, admin.StateOf(first.State), contradiction(first))
}

// contradiction describes which record contradicts the row.
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

// comparison describes which rows and intents were compared if no contradiction was found.
func (d *Deep) comparison() string {
	looked := fmt.Sprintf("%d rows", d.Rows)
	if d.From > 0 {
		looked += fmt.Sprintf(" after row %d", d.From)
	}
	looked += " agree with their markers and streams"
	if d.Intents > 0 {
		looked += fmt.Sprintf(", and %s with the markers of their messages", formatCount(d.Intents, "intent"))
	}
	return looked
}
