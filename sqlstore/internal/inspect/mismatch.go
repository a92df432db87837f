package inspect

import (
	"bytes"
	"context"
	"database/sql"
	"net/url"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/reaper"
	"github.com/semel-go/semel/store"
)

// MismatchKind is the kind of record that contradicts a row.
type MismatchKind int

const (
	// MismatchMarker means that the row's marker has another outcome, or that the row has no marker.
	MismatchMarker MismatchKind = iota
	// MismatchStream means that the row took effect although its stream has not reached the row's version.
	// MismatchStream also means that the row waits for an earlier version that the stream has passed already.
	MismatchStream
	// MismatchCause means that the row is an intent, but the message that wrote the intent has not taken
	// effect.
	MismatchCause
)

// Mismatch is a row that contradicts another record, although one commit always writes both.
type Mismatch struct {
	Row   int64
	State store.RowState
	By    MismatchKind
	// Marker is the outcome of the row's marker. For an intent, it is the outcome of the marker of the intent's cause.
	// Marker is 0 if the marker does not exist.
	Marker store.Outcome
	// Last is the last version of the row's stream that took effect; -1 if no version has taken effect.
	Last int64
	// Cause is the message that wrote the intent.
	Cause semel.Key
}

// Looked is the result of Denials.
type Looked struct {
	Denied []Mismatch
	// Last is the number of the last examined row. Rows is the number of examined rows.
	Last, Rows int64
	// Intents is the number of intents that were compared with the markers of their causes. An intent with an
	// unreadable cause (erased or encrypted) is not compared. An intent that was sent again is not compared either,
	// because the time when it was written is unknown.
	Intents int64
}

// lateIntent is the maximum time between the writing of a message's marker and the writing of its intents. lateIntent
// is longer than the timeout of any handler.
const lateIntent = time.Hour

// Denials examines rows of all consumers whose numbers are greater than the parameter after. The parameter limit is the
// maximum number of examined rows. Denials returns the rows of the given consumer that contradict their markers or
// streams, and the intents that contradict the markers of their causes. No commit of this store leaves such
// contradicting rows. If Looked.Rows is 0, all rows have been examined. No snapshot is held for longer than one
// statement, because one statement reads a row with its marker and its stream, and intents are read before their
// causes.
func (s *Store) Denials(ctx context.Context, consumer string, after int64, limit int) (Looked, error) {
	own, err := daily.OfConsumer(ctx, s.db, consumer)
	if err != nil {
		return Looked{}, err
	}
	var found Looked
	err = database.EachRow(ctx, s.db.Pool, own.SQL.Denied, func(rows *sql.Rows) error {
		d := Mismatch{By: MismatchMarker}
		var state string
		var outcome int64
		var last sql.NullInt64
		if err := rows.Scan(&d.Row, &state, &outcome, &last); err != nil {
			return err
		}
		if state == "" {
			found.Last, found.Rows = d.Row, outcome
			return nil
		}
		if d.State, d.Marker = store.RowState(state), store.Outcome(outcome); last.Valid {
			d.By, d.Last = MismatchStream, last.Int64
		}
		found.Denied = append(found.Denied, d)
		return nil
	}, []byte(consumer), after, limit)
	if err != nil {
		return Looked{}, s.db.Blameless("denied", err)
	}
	if found.Rows == 0 {
		return found, nil
	}
	err = findUncaused(ctx, own, consumer, after, limit, &found)
	return found, err
}

// intentRow is an intent of a consumer, with its cause: the message that wrote the intent.
type intentRow struct {
	store.StoredRow
	cause semel.Key
	// markerOutcome is the outcome of the cause's marker, or 0 if the cause has no marker. The field done is true if
	// the intent agrees with its cause.
	markerOutcome store.Outcome
	done          bool
}

// findUncaused finds, among the examined rows, the intents of a consumer whose causes have not taken effect.
func findUncaused(ctx context.Context, db *database.DB, consumer string, after int64, most int, found *Looked) error {
	all, marks, of, err := readIntents(ctx, db, consumer, after, most, found.Last)
	if err != nil || len(all) == 0 {
		return err
	}
	verdicts, err := marking.New(db).LookUpMarkers(ctx, marks)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		in := &all[of[i]]
		in.markerOutcome = max(in.markerOutcome, v.Was)
		in.done = in.done || v.Kind != store.Fresh && (v.Kind != store.Seen || v.Was == store.Applied)
	}
	// The times of removal are read last, so that they cover all markers that were removed until now.
	removed, err := reaper.New(db).Removed(ctx, consumer)
	if err != nil {
		return err
	}
	found.Intents = int64(len(all))
	for i := range all {
		in := &all[i]
		if in.done || !in.ReceivedAt.Add(-lateIntent).After(removed) {
			continue // the marker was removed; an existing marker may belong to a later duplicate
		}
		if denied, err := deniesIntent(ctx, db, in); err != nil {
			return err
		} else if denied {
			found.Denied = append(found.Denied, Mismatch{Row: in.Number, State: in.State, By: MismatchCause, Marker: in.markerOutcome, Cause: in.cause})
		}
	}
	return nil
}

// readIntents returns the intents of a consumer among the examined rows. The result marks contains the possible markers
// of the intents' causes, one for each generation. The result owners contains the index of the intent for each marker.
func readIntents(ctx context.Context, db *database.DB, consumer string, after int64, most int, last int64) (all []intentRow, marks []store.Mark, owners []int, err error) {
	from := []byte(url.PathEscape(consumer))
	causes, err := loadCauses(ctx, db, from, after, last)
	if err != nil || len(causes) == 0 {
		return nil, nil, nil, err
	}
	scopes, err := scopesOf(ctx, db, consumer)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, err := inbox.Rows(ctx, db, store.RowFilter{After: after, Limit: most}, func(c *inbox.Conditions) {
		c.And("i.number <= ?", last)
		c.And("i.cause is not null and s.source = ?", from)
	})
	for i := range rows {
		id, _ := rows[i].Message.Headers.Get(semelheader.Causation)
		before := len(marks)
		for _, sc := range scopes {
			if cause := (semel.Key{Consumer: consumer, Source: sc.source, ID: string(id)}); bytes.Equal(intents.Cause(cause), causes[rows[i].Number]) {
				if len(marks) == before {
					all = append(all, intentRow{StoredRow: rows[i], cause: cause})
				}
				marks, owners = append(marks, store.Mark{Scope: sc.number, ID: id}), append(owners, len(all)-1)
			}
		}
	}
	return all, marks, owners, err
}

// loadCauses returns the stored causes of intents, by row number.
func loadCauses(ctx context.Context, db *database.DB, from []byte, after, last int64) (map[int64][]byte, error) {
	all := map[int64][]byte{}
	err := database.EachRow(ctx, db.Pool, db.SQL.Causes, func(rows *sql.Rows) error {
		var row int64
		var cause []byte
		err := rows.Scan(&row, &cause)
		all[row] = cause
		return err
	}, from, after, last)
	if err != nil {
		return nil, db.Blameless("causes", err)
	}
	return all, nil
}

// numberedRow is the number of a scope (consumer, source and generation), with its source.
type numberedRow struct {
	number int64
	source string
}

func scopesOf(ctx context.Context, db *database.DB, consumer string) (all []numberedRow, err error) {
	all, err = database.List(ctx, db.Pool, db.SQL.Scopes, func(rows *sql.Rows) (numberedRow, error) {
		var n numberedRow
		var source []byte
		err := rows.Scan(&n.number, &source)
		n.source = string(source)
		return n, err
	}, []byte(consumer))
	return all, db.Answer("scopes", err)
}

// deniesIntent reports whether an intent contradicts the marker of its cause. Two kinds of intents contradict nothing.
// A failed message keeps the intents that its earlier steps wrote. A message that ran again may have taken effect
// earlier, which its row shows. If the message no longer has a row, the cause of the intent is unknown.
func deniesIntent(ctx context.Context, db *database.DB, in *intentRow) (bool, error) {
	if in.markerOutcome == 0 {
		return true, nil
	}
	rows, err := New(db).RowsOf(ctx, in.cause.Consumer, in.cause.ID, false)
	if err != nil {
		return false, err
	}
	denied := in.markerOutcome == store.Waiting || in.markerOutcome == store.Parked
	for i := range rows {
		if r := &rows[i]; r.Key.Source == in.cause.Source && !r.Conflict {
			if len(r.Steps) > 0 || r.CallsStarted > 0 {
				return false, nil
			}
			denied = true
		}
	}
	return denied, nil
}
