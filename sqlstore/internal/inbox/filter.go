package inbox

import (
	"strconv"
	"strings"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// In adds the condition that a column has one of the given values.
func (c *Conditions) In(column string, values []any) {
	c.And(column+" in (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
}

// Of inserts the conditions into a statement, and returns the statement.
func (c *Conditions) Of(statement string) string {
	return strings.Replace(statement, "{filter}", c.text.String(), 1)
}

// Blobs converts texts to arguments of type bytes.
func Blobs(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = []byte(t)
	}
	return all
}

// Conditions builds a filter in SQL. The field Args contains the arguments of the whole statement.
type Conditions struct {
	Dialect *database.Dialect
	text    strings.Builder
	Args    []any
}

// And adds a condition. Each ? in the condition is a placeholder for a value.
func (c *Conditions) And(condition string, values ...any) {
	c.text.WriteString(" and ")
	for _, v := range values {
		before, after, _ := strings.Cut(condition, "?")
		c.Args = append(c.Args, v)
		c.text.WriteString(before + c.Dialect.Bind + strconv.Itoa(len(c.Args)))
		condition = after
	}
	c.text.WriteString(condition)
}

func (c *Conditions) filter(f *store.RowFilter) {
	if f.Consumer != "" {
		c.And("s.consumer = ?", []byte(f.Consumer))
	}
	if len(f.IDs) > 0 {
		keys := make([]any, len(f.IDs))
		for i, id := range f.IDs {
			keys[i], _ = sqlform.ID([]byte(id))
		}
		c.In("i.id", keys)
	}
	if f.Reason != "" {
		c.And("i.reason = ?", sqlform.Plain(string(f.Reason)))
	}
	if f.Type != "" {
		c.And("i.type = ?", sqlform.Plain(f.Type))
	}
	if !f.ReceivedBefore.IsZero() {
		c.And("i.received_at < "+c.Dialect.Moment, f.ReceivedBefore.UnixMilli())
	}
	if f.DueLater {
		c.And("(i.state <> 'RECEIVED' or i.due_at > " + c.Dialect.Now + ")")
	}
	if len(f.Numbers) > 0 {
		c.In("i.number", database.Anys(f.Numbers))
	}
	if len(f.States) > 0 {
		c.In("i.state", States(f.States))
	}
}

// stream adds the conditions for the rows of a stream. If f.After is set, the rows follow the last row of the
// previous page.
func (c *Conditions) stream(f *store.RowFilter) {
	s := f.Stream
	c.And("s.source = ? and i.stream = ?", []byte(s.Source), []byte(s.Name))
	c.And("(i.stream_version > ? or i.stream_version = ? and i.number > ?)", s.From, s.From, f.After)
	if s.To > 0 {
		c.And("i.stream_version <= ?", s.To)
	}
}

// States converts states to arguments.
func States(names []store.RowState) []any {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}
