package sqlform

import (
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/store"
)

// State is the state of this name in a table of rows; an error if a newer release
// wrote it.
func State(name, table string) (store.RowState, error) {
	s := store.RowState(name)
	if s.Known() {
		return s, nil
	}
	return s, &newer.Error{What: "state", Value: strconv.Quote(name), Table: table}
}

// Acted is a row that somebody wants to act on, as the tables have it.
type Acted struct {
	Number int64
	State  string
	// Outcome is what the row's marker says; parked if there is none.
	Outcome int64
	// Inbox and Markers are the tables' names.
	Inbox, Markers string
}

// Understood is the row's state; an error that wraps semel.ErrState if only a
// newer release knows what the row says, or its marker.
func (a Acted) Understood() (store.RowState, error) {
	s, err := State(a.State, a.Inbox)
	if _, known := store.KnownOutcome(a.Outcome); err == nil && !known {
		err = NewerError(a.Outcome, a.Markers)
	}
	if err != nil {
		return s, fmt.Errorf("row %d: %w: %w", a.Number, semel.ErrState, err)
	}
	return s, nil
}

// RowValues are a row's columns after its key, in the order of the statements.
func RowValues(c Crypt, m *Mark, r *store.Row) ([]any, error) {
	message := r.Message
	if message == nil {
		message = &semel.Message{}
	}
	envelope, key, body, err := c.message(m.Mark, message)
	if err != nil {
		return nil, err
	}
	var stream, version any // NULL where it has none
	if m.Version.Number != 0 {
		stream, version = m.Version.Stream, m.Version.Number
	}
	var cause any
	if len(m.Cause) > 0 {
		cause = m.Cause
	}
	print, sum := c.MarkPrint(m)
	return []any{
		print, sum, r.Surrogate, string(r.State), Plain(string(r.Reason)),
		Plain(message.Topic), int64(message.Origin.Partition), message.Origin.Offset, c.column(message.Origin.BrokerID),
		key, Plain(structured.Type(message)), c.column(message.DataSchema()), envelope, body,
		int64(r.Attempts), int64(r.Attempts), c.errorOf(m.Mark, r.FirstError), c.errorOf(m.Mark, r.LastError),
		r.After.Milliseconds(), stream, version, cause,
	}, nil
}
