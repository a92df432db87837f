package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/sqlstore"
)

const (
	// slice is how many rows are looked at in a statement, mostDenied how many are named.
	slice      = 5000
	mostDenied = 100
)

// Deep is what is found by looking at rows and their markers.
type Deep struct {
	// From is the number of the row behind which it began, To that of the last one that was
	// looked at: who goes on behind it finds what is left.
	From, To int64
	// Rows are as many that were looked at.
	Rows   int64
	Denied []sqlstore.Denied
	// Rest says why rows behind To were not looked at; empty: all were.
	Rest string
}

// denials looks at a slice of rows; see sqlstore.Store.Denials.
type denials func(ctx context.Context, after int64, most int) (all []sqlstore.Denied, last, looked int64, err error)

// deeply looks at the rows behind one, slice by slice: a marker and its row are written in one
// commit, so that they never say different things in one statement, and no snapshot is held
// for longer. Where a slice fails, or ctx ends, those before it stand.
func deeply(ctx context.Context, from int64, within time.Duration, of denials) *Deep {
	d := &Deep{From: from, To: from}
	for d.Rest == "" {
		soon, cancel := context.WithTimeout(ctx, within)
		found, last, looked, err := of(soon, d.To, slice)
		cancel()
		switch {
		case ctx.Err() != nil:
			d.Rest = "it was interrupted"
		case err != nil:
			d.Rest = plain(err)
		case looked > 0:
			d.add(found, last, looked)
		}
		if err == nil && looked < slice {
			break
		}
	}
	return d
}

// add takes a slice, up to the row with which there are as many as are named.
func (d *Deep) add(found []sqlstore.Denied, last, looked int64) {
	slices.SortFunc(found, func(a, b sqlstore.Denied) int { return cmp.Compare(a.Row, b.Row) })
	if room := mostDenied - len(d.Denied); len(found) > room {
		found = found[:room]
		last, looked = d.To, 0
		if room > 0 {
			last = found[room-1].Row
		}
		d.Rest = fmt.Sprintf("%d were found", mostDenied)
	}
	d.Denied, d.To, d.Rows = append(d.Denied, found...), last, d.Rows+looked
}

// Command goes on where it ended.
func (s *Subject) Command() string {
	return fmt.Sprintf("semel check --deep --consumer %s --from %d --config %s", s.Consumer.Name, s.Facts.Deep.To, s.Policy.File)
}
