package database

import (
	"context"
	"database/sql"
	"encoding/hex"
	"iter"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

// Arrays returns the columns of a flat list of tuples. Each column is a PostgreSQL array in text form, because
// every driver accepts a string.
func Arrays(width int, flat []any) []any {
	columns := make([]any, width)
	for c := range columns {
		text := []byte{'{'}
		for i := c; i < len(flat); i += width {
			if i > c {
				text = append(text, ',')
			}
			text = appendElement(text, flat[i])
		}
		columns[c] = string(append(text, '}'))
	}
	return columns
}

// Columns converts each list of values to a PostgreSQL array in text form.
func Columns(of []any) []any {
	texts := make([]any, len(of))
	for c, column := range of {
		switch column := column.(type) {
		case []int64:
			texts[c] = Array(column)
		case [][]byte:
			texts[c] = Array(column)
		case []string:
			texts[c] = Array(column)
		default:
			panic("sqlstore: a column of an unsupported type")
		}
	}
	return texts
}

// Array converts a list of values to a PostgreSQL array in text form.
func Array[T any](values []T) string {
	text := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendElement(text, v)
	}
	return string(append(text, '}'))
}

// appendElement appends a number, a text, or bytes as hexadecimal digits; nil bytes become NULL.
func appendElement(text []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(text, v, 10)
	case []byte:
		if v == nil {
			return append(text, "NULL"...)
		}
		text = append(text, `"\\x`...)
		text = hex.AppendEncode(text, v)
		return append(text, '"')
	case string:
		text = append(text, '"')
		for i := range len(v) {
			if v[i] == '"' || v[i] == '\\' {
				text = append(text, '\\')
			}
			text = append(text, v[i])
		}
		return append(text, '"')
	default:
		panic("sqlstore: an array of an unsupported type")
	}
}

// preparedList has the statements with lists, each prepared for each list length in Dialect.Lengths. SQLite takes twice
// as long to parse a list of 500 tuples as to execute it.
type preparedList struct {
	ByLength atomic.Pointer[map[ofLength]*sql.Stmt]
	busy     atomic.Bool
}

type ofLength struct {
	statement string
	n         int
}

// Of returns the prepared statement for a list with n tuples; nil if the statement is not prepared for this length.
func (p *preparedList) Of(statement string, n int) *sql.Stmt {
	if all := p.ByLength.Load(); all != nil {
		return (*all)[ofLength{statement, n}]
	}
	return nil
}

// PrepareLists prepares the statements that write markers. The statements are prepared once, before a batch takes its
// connection, because the pool may have only one connection. A statement that cannot be prepared yet, for example
// because the tables are missing, is sent as text. PrepareLists returns an error if it could not get a lock. If
// PrepareLists returns an error, the caller should also return an error at once, because its own statements would wait
// just as long for the lock.
func (s *DB) PrepareLists(ctx context.Context) error {
	p := &s.Prepared
	if len(s.Dialect.Lengths) == 0 || p.ByLength.Load() != nil || !p.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer p.busy.Store(false)
	all := map[ofLength]*sql.Stmt{}
	for _, statement := range []string{s.SQL.Mark, s.SQL.Judge} {
		for _, n := range s.Dialect.Lengths {
			stmt, err := s.prepare(ctx, list(statement, n))
			if stmt == nil {
				closeAll(all)
				return err
			}
			all[ofLength{statement, n}] = stmt
		}
	}
	runtime.AddCleanup(s, closeAll, all)
	p.ByLength.Store(&all)
	return nil
}

// prepare prepares a statement on an open idle connection. prepare opens no connection, because a new connection could
// create an empty database file. If there is no idle connection, or if the statement cannot be prepared yet, prepare
// returns nil without an error.
func (s *DB) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s.Pool.Stats().Idle == 0 || s.File.Check() != nil {
		return nil, nil
	}
	stmt, err := s.Pool.PrepareContext(ctx, text)
	if err != nil && s.Classify(err) != store.ClassContended {
		err = nil
	}
	return stmt, err
}

func closeAll(all map[ofLength]*sql.Stmt) {
	for _, stmt := range all {
		_ = stmt.Close()
	}
}

var (
	prefixForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)
	schemaForm = regexp.MustCompile(`^[^"'\\{}\x00-\x1f]{1,63}$`)
	listForm   = regexp.MustCompile(`(?s)\{list:(.*?)\}`)
)

// Bulk returns a statement for a list of tuples, and its arguments. The parameter flat has the values of all tuples.
func (s *DB) Bulk(statement string, width int, flat []any) (text string, args []any) {
	if len(s.Dialect.Lengths) == 0 {
		return statement, Arrays(width, flat)
	}
	return list(statement, len(flat)/width), flat
}

// Chunks splits a list into parts that are short enough for one statement.
func (d *Dialect) Chunks(of []int) iter.Seq[[]int] {
	if len(d.Lengths) == 0 {
		return slices.Values([][]int{of})
	}
	return slices.Chunk(of, d.Lengths[0])
}

// list returns the statement with the part {list:tuple} repeated n times.
func list(statement string, n int) string {
	at := listForm.FindStringSubmatchIndex(statement)
	tuple := statement[at[2]:at[3]]
	return statement[:at[0]] + strings.Repeat(tuple+", ", n-1) + tuple + statement[at[1]:]
}
