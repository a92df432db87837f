package sqlform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/store"
)

// State returns the row state with the given name. An error means that a newer release has written the state.
func State(name, table string) (store.RowState, error) {
	s := store.RowState(name)
	if s.Known() {
		return s, nil
	}
	return s, &newer.Error{What: "state", Value: strconv.Quote(name), Table: table}
}

// Acted is a stored row that an operator is about to change.
type Acted struct {
	Number int64
	State  string
	// Outcome is the outcome of the row's marker. If the row has no marker, Outcome is parked.
	Outcome int64
	// Inbox and Markers are the names of the tables.
	Inbox, Markers string
}

// Understood returns the state of the row. An error wraps semel.ErrState and means that a newer release has
// written the state of the row or the outcome of its marker.
func (a Acted) Understood() (store.RowState, error) {
	s, err := State(a.State, a.Inbox)
	if err == nil && !store.Outcome(a.Outcome).Known() {
		err = NewerError(a.Outcome, a.Markers)
	}
	if err != nil {
		return s, fmt.Errorf("row %d: %w: %w", a.Number, semel.ErrState, err)
	}
	return s, nil
}

// RowValues returns the values of a row's columns after the key columns, in the order of the statements.
func RowValues(c Crypt, m *Mark, r *store.Row) ([]any, error) {
	message := r.Message
	if message == nil {
		message = &semel.Message{}
	}
	envelope, key, body, err := c.message(m.Mark, message)
	if err != nil {
		return nil, err
	}
	var stream, version any // NULL if the message has no version
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
		Plain(message.Topic), int64(message.Origin.Partition), message.Origin.Offset, c.plainColumn(message.Origin.BrokerID),
		key, Plain(structured.Type(message)), c.plainColumn(message.DataSchema()), envelope, body,
		int64(r.Attempts), int64(r.Attempts), c.errorOf(m.Mark, r.FirstError), c.errorOf(m.Mark, r.LastError),
		r.After.Milliseconds(), stream, version, cause,
	}, nil
}

// step is the JSON of a step in the tables.
type step struct {
	Name   string `json:"name"`
	Output []byte `json:"output,omitempty"`
	// The field None is true if the output is nil, to distinguish nil from an empty output.
	None bool `json:"none,omitempty"`
}

// Steps returns the JSON that a row stores for its steps. Except for names, the JSON is ASCII.
func Steps(c Crypt, row int64, done []store.StepDone) (string, error) {
	all := make([]step, len(done))
	for i, d := range done {
		output, err := c.Hide(ofStep, rowID(row), d.Output)
		if err != nil {
			return "", err
		}
		all[i] = step{d.Name, output, d.Output == nil}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// ReadSteps is the inverse of Steps.
func ReadSteps(c Crypt, row int64, text []byte) ([]store.StepDone, error) {
	if text == nil {
		return nil, nil
	}
	var all []step
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	done := make([]store.StepDone, len(all))
	for i, s := range all {
		if c.required() && len(s.Output) > 0 && !bytes.HasPrefix(s.Output, encryptedPrefix) {
			return nil, fmt.Errorf("the output of step %q is in plain text, and the store requires encryption", s.Name)
		}
		output, err := c.Show(ofStep, rowID(row), s.Output)
		if err != nil {
			return nil, err
		}
		done[i] = store.StepDone{Name: s.Name, Output: output}
		if s.Output == nil && !s.None {
			done[i].Output = []byte{}
		}
	}
	return done, nil
}

// ofStep is the kind of encrypted outputs of steps. An output is bound to its row.
const ofStep = "output of a step"

func rowID(row int64) []byte { return strconv.AppendInt(nil, row, 10) }

// mostReceived limits the bytes of messages that one statement writes. A larger message gets its own statement. An
// array is one value in PostgreSQL, which is limited to 1 GiB, and drivers send the array as a text that is twice as
// long.
const mostReceived = 16 << 20

// Received contains the rows of received messages as columns, so that PostgreSQL can write all rows with one
// statement.
type Received struct {
	Scopes, Versions, Partitions, Offsets, Numbers    []int64 // Numbers: versions in streams, 0 for none
	IDs, Longs, Sums, Keys, Payloads, Streams, Causes [][]byte
	Topics, BrokerIDs, Types, Schemas, Envelopes      []string
	bytes                                             int
}

// Receive returns the rows of the new messages (those with the answer Fresh), in as few pieces as the size limit of
// statements allows.
func Receive(c Crypt, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message) (pieces []*Received, err error) {
	for i, m := range Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		envelope, key, body, err := c.message(m.Mark, messages[i])
		if err != nil {
			return nil, err
		}
		size := len(body) + len(key) + len(envelope)
		if n := len(pieces); n == 0 || pieces[n-1].bytes+size > mostReceived {
			pieces = append(pieces, &Received{})
		}
		r := pieces[len(pieces)-1]
		r.bytes += size
		r.add(c, m, messages[i], envelope, key, body)
	}
	return pieces, nil
}

func (r *Received) add(c Crypt, m Mark, of *semel.Message, envelope string, key, body []byte) {
	r.Scopes, r.IDs, r.Longs = append(r.Scopes, m.Scope), append(r.IDs, m.Key), append(r.Longs, m.Long)
	version, sum := c.MarkPrint(&m)
	r.Versions, r.Sums = append(r.Versions, version), append(r.Sums, sum)
	r.Topics = append(r.Topics, Plain(of.Topic))
	r.Partitions, r.Offsets = append(r.Partitions, int64(of.Origin.Partition)), append(r.Offsets, of.Origin.Offset)
	r.BrokerIDs, r.Keys = append(r.BrokerIDs, c.plainColumn(of.Origin.BrokerID)), append(r.Keys, key)
	r.Types, r.Schemas = append(r.Types, Plain(structured.Type(of))), append(r.Schemas, c.plainColumn(of.DataSchema()))
	r.Envelopes, r.Payloads = append(r.Envelopes, envelope), append(r.Payloads, body)
	var stream []byte // NULL if the message has no version
	if m.Version.Number != 0 {
		stream = m.Version.Stream
	}
	r.Streams, r.Numbers = append(r.Streams, stream), append(r.Numbers, m.Version.Number)
	r.Causes = append(r.Causes, m.Cause)
}

// Columns returns the arguments of Postgres.Receive. Each argument is a []int64, a []string, or a [][]byte.
// In a [][]byte, nil means NULL.
func (r *Received) Columns() []any {
	return []any{r.Scopes, r.IDs, r.Longs, r.Versions, r.Sums, r.Topics, r.Partitions, r.Offsets, r.BrokerIDs,
		r.Keys, r.Types, r.Schemas, r.Envelopes, r.Payloads, r.Streams, r.Numbers, r.Causes}
}

// Written returns an error if some rows of received messages were not written.
func Written(rows int64, expected int) error { return WrittenIn(Inbox, rows, expected) }

// The tables of WrittenIn, by the names that errors use.
const (
	Inbox   = "the inbox"
	Acts    = "the changes by operators"
	Edits   = "the edits"
	Results = "the results"
	Seals   = "the seals"
)

// SwallowedError means that rows of one of Semel's tables were not written although the statement succeeded. A message
// cannot have caused this error.
type SwallowedError struct {
	Table       string
	Written, Of int64
}

// Error implements error.
func (e *SwallowedError) Error() string {
	return fmt.Sprintf("%d of %d rows of %s were written: a trigger or a rule prevents the others, or array_nulls is off; nothing is committed; "+
		"semel migrate status (in Go, Check) names the trigger or rule to drop", e.Written, e.Of, e.Table)
}

// WrittenIn returns a *SwallowedError if a statement wrote more or fewer rows than expected.
func WrittenIn(table string, rows int64, expected int) error {
	if rows == int64(expected) {
		return nil
	}
	return &SwallowedError{table, rows, int64(expected)}
}
