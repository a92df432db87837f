package marking

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Lists runs, in a transaction, statements with lists of marks. A mark is a request to write a marker.
type Lists struct {
	DB *database.DB
	Tx *sql.Tx
	// Own is true if Tx is a transaction of the store itself. In a transaction of the store, Lists can use prepared
	// statements.
	Own bool
}

// Chunks splits a list for the statements. With prepared statements, the parts have the prepared lengths. Without
// prepared statements, the number of parts is as small as possible.
func (l Lists) Chunks(of []int) iter.Seq[[]int] {
	if !l.Own || l.DB.Prepared.ByLength.Load() == nil {
		return l.DB.Dialect.Chunks(of)
	}
	return func(yield func([]int) bool) {
		for _, n := range l.DB.Dialect.Lengths {
			for len(of) >= n {
				if !yield(of[:n:n]) {
					return
				}
				of = of[n:]
			}
		}
	}
}

// query runs a statement with a list of tuples. The parameter width is the number of values in a tuple, flat has the
// values of all tuples one after the other, and more contains further arguments.
func (l Lists) query(ctx context.Context, statement string, width int, flat []any, more ...any) (*sql.Rows, error) {
	if prepared := l.DB.Prepared.Of(statement, len(flat)/width); l.Own && prepared != nil {
		return l.Tx.StmtContext(ctx, prepared).QueryContext(ctx, append(flat, more...)...)
	}
	text, args := l.DB.Bulk(statement, width, flat)
	return l.Tx.QueryContext(ctx, text, append(args, more...)...)
}

// Judged returns the store's verdict (new, duplicate, conflict, …) for a message whose marker is in a table with daily
// partitions. The parameter there is the existing marker of the same identity, or the zero value if no marker exists.
// Judged sets the key of m to the key of the existing marker.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	a := there.Judged(c, m)
	if a.Aside {
		m.SetAside()
	}
	if a.Unready && m.Asks() {
		return a.Verdict, &database.Error{Doing: "mark", Class: store.ClassDown, Err: errUnready}
	}
	return a.Verdict, nil
}

var errUnready = errors.New("the partition for tomorrow's markers is missing, so messages from the future cannot be recognized; creating partitions has failed for days: run semel retention run as the owner of the tables, and read its output")

// setAside writes markers whose ids belong to no daily partition. Markers outside of the daily partitions only record
// an outcome, because their messages are not applied.
func (l Lists) setAside(ctx context.Context, marks []sqlform.Mark, seen []int, verdicts []store.Verdict) error {
	var outside []int
	for _, i := range seen {
		if verdicts[i].Kind == store.Old && !marks[i].Asks() {
			outside = append(outside, i)
			verdicts[i] = store.Verdict{}
		}
	}
	if len(outside) == 0 {
		return nil
	}
	if err := l.Insert(ctx, l.DB.Days.SQL.Aside, marks, outside, verdicts); err != nil {
		return err
	}
	var met []int // markers that this batch, or a faster batch, has written already
	for _, i := range outside {
		if verdicts[i].Kind == store.Fresh {
			marks[i].SetAside()
		} else {
			met = append(met, i)
		}
	}
	if len(met) == 0 {
		return nil
	}
	return l.judge(ctx, marks, nil, met, verdicts)
}

// The number of scopes (consumer, source and generation) that one statement reads. Most batches have one source, and so
// one scope.
const scopesAtOnce = 1000

// loadLows returns, by scope (consumer, source and generation), the times up to which markers were removed. Only
// the times that the markers of the batch need are read.
func (l Lists) loadLows(ctx context.Context, marks []store.Mark) (map[int64]sqlform.Low, error) {
	scopes := sqlform.Aged(marks)
	if len(scopes) == 0 {
		return nil, nil
	}
	lows := map[int64]sqlform.Low{}
	for chunk := range slices.Chunk(scopes, scopesAtOnce) {
		if err := l.lowsOf(ctx, database.Anys(chunk), lows); err != nil {
			return nil, err
		}
	}
	return lows, nil
}

func (l Lists) lowsOf(ctx context.Context, scopes []any, lows map[int64]sqlform.Low) error {
	text, args := l.DB.Bulk(l.DB.SQL.Low, 1, scopes)
	return database.EachRow(ctx, l.Tx, text, func(rows *sql.Rows) error {
		var scope, before, now int64
		if err := rows.Scan(&scope, &before, &now); err != nil {
			return err
		}
		lows[scope] = sqlform.Low{Before: time.UnixMicro(before), Now: time.UnixMicro(now)}
		return nil
	}, args...)
}

// JudgeAges changes the verdicts of new messages that are older than the retention of markers. JudgeAges must run after
// the statement that writes the markers. The statement that writes the markers may have waited for the commit of a
// process that removed markers, and a statement that began earlier would not see this commit.
func (l Lists) JudgeAges(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	lows, err := l.loadLows(ctx, marks)
	if err == nil {
		sqlform.JudgeAges(marks, lows, verdicts)
	}
	return err
}
