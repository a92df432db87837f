package sqlform

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/store"
)

// mostReceived is how many bytes of messages one statement writes at most, unless
// one message alone has more: an array is one value to PostgreSQL, whose bound is
// 1 GiB, and twice as long in the text form that every driver passes on.
const mostReceived = 16 << 20

// Received are rows of messages that were received, as columns: PostgreSQL writes
// them with one statement.
type Received struct {
	Scopes, Versions, Partitions, Offsets, Numbers    []int64 // Numbers: of versions in streams, 0 if it has none
	IDs, Longs, Sums, Keys, Payloads, Streams, Causes [][]byte
	Topics, BrokerIDs, Types, Schemas, Envelopes      []string
	bytes                                             int
}

// Receive are the rows of the messages whose marks are fresh, in as few pieces as
// statements can take.
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
	r.BrokerIDs, r.Keys = append(r.BrokerIDs, c.column(of.Origin.BrokerID)), append(r.Keys, key)
	r.Types, r.Schemas = append(r.Types, Plain(structured.Type(of))), append(r.Schemas, c.column(of.DataSchema()))
	r.Envelopes, r.Payloads = append(r.Envelopes, envelope), append(r.Payloads, body)
	var stream []byte // NULL where it has none
	if m.Version.Number != 0 {
		stream = m.Version.Stream
	}
	r.Streams, r.Numbers = append(r.Streams, stream), append(r.Numbers, m.Version.Number)
	r.Causes = append(r.Causes, m.Cause)
}

// Columns are the arguments of Postgres.Receive, each a []int64, a []string or a
// [][]byte, in which nil is NULL.
func (r *Received) Columns() []any {
	return []any{r.Scopes, r.IDs, r.Longs, r.Versions, r.Sums, r.Topics, r.Partitions, r.Offsets, r.BrokerIDs,
		r.Keys, r.Types, r.Schemas, r.Envelopes, r.Payloads, r.Streams, r.Numbers, r.Causes}
}

// Written is an error unless all rows of those that are received were written.
func Written(rows int64, of int) error { return WrittenIn(Inbox, rows, of) }

// The tables of WrittenIn, as people call them.
const (
	Inbox   = "the inbox"
	Acts    = "the acts of operators"
	Edits   = "the edits"
	Results = "the results"
	Seals   = "the seals"
)

// SwallowedError says that rows of one of Semel's tables were not written although their
// statement succeeded. No message is to blame.
type SwallowedError struct {
	Table       string
	Written, Of int64
}

// Error implements error.
func (e *SwallowedError) Error() string {
	return fmt.Sprintf("%d of %d rows of %s were written: a trigger or a rule keeps the others out, or array_nulls is off; nothing is committed; "+
		"semel migrate status (in Go, Check) names the trigger or rule to drop", e.Written, e.Of, e.Table)
}

// WrittenIn is a *SwallowedError unless so many rows of the table were written.
func WrittenIn(table string, rows int64, of int) error {
	if rows == int64(of) {
		return nil
	}
	return &SwallowedError{table, rows, int64(of)}
}
