// Package inbox reads inbox rows.
package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store lists inbox rows.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// Rows implements store.Inbox.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	return Rows(ctx, s.db, f, func(*Conditions) {})
}

// Rows returns the rows that match the filter and the conditions that the function more adds.
func Rows(ctx context.Context, s *database.DB, f store.RowFilter, more func(*Conditions)) ([]store.StoredRow, error) {
	if f.Limit <= 0 {
		f.Limit = database.MostRows
	}
	c := &Conditions{Dialect: s.Dialect, Args: []any{f.Bodies, f.After, f.Limit}}
	order, by := "i.number", ""
	switch {
	case f.Stream != nil:
		order, c.Args[1] = "i.stream_version, i.number", int64(0)
		c.stream(&f)
	case f.After > 0 && s.SQLite != nil:
		// Each further page reads the rows by number. With an index over states, SQLite would sort all matching rows
		// again for each page.
		by = " not indexed"
	}
	c.filter(&f)
	more(c)
	text := strings.NewReplacer("{filter}", c.text.String(), "{order}", order, "{by}", by).Replace(s.SQL.Rows)
	found, err := database.List(ctx, s.Pool, text, func(rows *sql.Rows) (store.StoredRow, error) { return ScanRow(s, rows) }, c.Args...)
	return found, s.Answer("rows", err)
}

// cells contains the columns of one inbox row. The columns are read one by one, so that an unreadable column hides
// neither the other columns nor later rows.
type cells struct {
	table  string
	crypt  sqlform.Crypt
	values []any
	next   int
	faults []string
	hidden string // the reason why the row must not be processed: it cannot be decrypted, or it should be encrypted and is not
}

func (c *cells) take(what string) any {
	v := c.values[c.next]
	c.next++
	if v == nil && what != "" {
		c.fault(what, "is missing")
	}
	return v
}

func (c *cells) fault(what, why string) { c.faults = append(c.faults, what+" "+why) }

func (c *cells) integer(what string) int64 {
	v := c.take(what)
	n, ok := v.(int64)
	if !ok && v != nil {
		c.fault(what, "is not a number")
	}
	return n
}

// readBytes reads a column of bytes; NULL becomes nil. If the parameter what is not empty, NULL is a fault of
// the row.
func (c *cells) readBytes(what string) []byte {
	switch v := c.take(what).(type) {
	case []byte:
		if v == nil { // one SQLite driver returns a typed nil for empty bytes, and an untyped nil for NULL
			return []byte{}
		}
		return v
	case string:
		return []byte(v)
	case nil:
		return nil
	default:
		c.fault(what, "is not text")
		return nil
	}
}

func (c *cells) text(what string) string { return string(c.readBytes(what)) }

// mayTime reads a column that contains a time or NULL; NULL becomes the zero time.
func (c *cells) mayTime() time.Time {
	if n, ok := c.take("").(int64); ok {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

func (c *cells) time(what string) time.Time { return time.UnixMilli(c.integer(what)) }

const rowColumns = 39

// ScanRow reads an inbox row, and further columns into the parameter more.
func ScanRow(db *database.DB, rows *sql.Rows, more ...any) (store.StoredRow, error) {
	c := &cells{table: db.SQL.Inbox, crypt: db.Crypt, values: make([]any, rowColumns)}
	into := make([]any, rowColumns)
	for i := range into {
		into[i] = &c.values[i]
	}
	if err := rows.Scan(append(into, more...)...); err != nil {
		return store.StoredRow{}, err
	}
	r := c.row()
	r.Unreadable = c.hidden
	if len(c.faults) > 0 {
		r.LastError = fmt.Sprintf("the row cannot be read completely: %s; %s", strings.Join(c.faults, ", "), r.LastError)
	}
	return r, nil
}

// row reads the columns in the order in which the statement returns them.
func (c *cells) row() store.StoredRow {
	r := store.StoredRow{Number: c.integer("number"), Revision: c.integer("revision")}
	r.Key.Consumer, r.Key.Source = c.text("consumer"), c.text("source")
	id, long := c.readBytes("id"), c.readBytes("")
	var ok bool
	if r.Key.ID, ok = sqlform.OriginalID(id, long); !ok {
		c.fault("id", "has an unknown form")
	}
	r.Conflict = len(c.readBytes("conflict")) > 0
	version := c.integer("fingerprint version")
	r.Fingerprint = c.crypt.ReadPrint(sqlform.PrintOfID, sqlform.InnerKey(id), version, c.readBytes(""))
	r.Surrogate = c.integer("surrogate") != 0
	r.State, r.Reason = c.state(), semel.Reason(c.text("reason"))
	r.Attempts, r.Repeated = int(c.integer("attempts")), int(c.integer("repeated"))
	r.FirstError = c.crypt.ShowError(r.Key, r.Number, c.text("first error"))
	r.LastError = c.crypt.ShowError(r.Key, r.Number, c.text("last error"))
	r.ReceivedAt, r.ChangedAt = c.time("received at"), c.time("changed at")
	r.Started = int(c.integer("started"))
	due, locked := c.mayTime(), c.mayTime()
	switch {
	case r.State == store.StateInProgress:
		r.LockedUntil = locked
	case r.State.Outcome() == store.Waiting:
		r.DueAt = due
	}
	r.Stream = string(c.readBytes(""))
	r.Version, _ = c.take("").(int64)
	r.Line = string(c.readBytes(""))
	r.Place, _ = c.take("").(int64)
	r.CallsStarted, r.CallsFinished = int(c.integer("calls started")), int(c.integer("calls finished"))
	r.CalledAt = c.mayTime()
	if r.State == store.StateCompleted || r.State == store.StateDiscarded {
		c.crypt = c.crypt.Lenient()
	}
	r.Steps = c.readSteps(r.Number)
	r.Message, r.Size = c.message(r.Key)
	r.BodyRemoved = c.integer("whether the body was removed") != 0
	return r
}

// readSteps returns the steps of the row. If the steps cannot be read, readSteps reports a fault of the row, and
// returns one empty step to show that the row has steps.
func (c *cells) readSteps(row int64) []store.StepDone {
	done, err := sqlform.ReadSteps(c.crypt, row, c.readBytes(""))
	if err != nil {
		c.fault("steps", "are broken: "+err.Error())
		return []store.StepDone{{}}
	}
	return done
}

// state returns the state of the row. The method also returns a state that only a newer release knows, so that people
// can read the state.
func (c *cells) state() store.RowState {
	state, err := sqlform.State(c.text("state"), c.table)
	if err != nil {
		c.faults = append(c.faults, err.Error())
	}
	return state
}

func (c *cells) message(of semel.Key) (*semel.Message, int) {
	m := &semel.Message{Topic: c.text("topic")}
	m.Origin.Partition, m.Origin.Offset = int32(c.integer("partition")), c.integer("offset")
	m.Origin.BrokerID = c.text("broker id")
	m.Key = c.readBytes("")
	m.Attributes.Type = c.text("type")
	envelope := c.readBytes("envelope")
	size, _ := c.take("").(int64)
	m.Body = c.readBytes("")
	if envelope != nil {
		kept := *m
		m.Attributes.Type = ""
		hiding, err := c.crypt.Unseal(of, envelope, m)
		switch {
		case hiding:
			*m = kept
			m.Key, m.Body, c.hidden = nil, nil, err.Error()
			c.faults = append(c.faults, c.hidden)
		case err != nil:
			*m = kept
			c.fault("envelope", "is broken: "+err.Error())
		default:
			c.hidden = c.crypt.RefusesPlain(envelope)
		}
	}
	return m, c.crypt.Size(envelope, int(size))
}
