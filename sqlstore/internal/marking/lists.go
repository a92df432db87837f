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

// Lists runs statements over lists in a transaction.
type Lists struct {
	DB *database.DB
	Tx *sql.Tx
	// Own: tx is of the store's own database, so that what is prepared there fits.
	Own bool
}

// Chunks are the pieces of a list that statements take: those that are prepared,
// or else as few as can be.
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

// query runs a statement over tuples of width values, which flat holds one after the other;
// more are further arguments.
func (l Lists) query(ctx context.Context, statement string, width int, flat []any, more ...any) (*sql.Rows, error) {
	if prepared := l.DB.Prepared.Of(statement, len(flat)/width); l.Own && prepared != nil {
		return l.Tx.StmtContext(ctx, prepared).QueryContext(ctx, append(flat, more...)...)
	}
	text, args := l.DB.Bulk(statement, width, flat)
	return l.Tx.QueryContext(ctx, text, append(args, more...)...)
}

// Judged returns the verdict on a mark that met this marker, or none, in a table of days; the mark has the
// key under which its marker stands.
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

var errUnready = errors.New("no day is made for tomorrow's markers, so that nobody can tell what is from the future; what makes days has failed for days: run semel retention run as the owner of the tables, and read what it says")

// setAside writes those marks of ids outside of what is kept that only say what became of
// their messages.
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
	var met []int // by another of the batch, or of a batch that was faster
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

// scopesAtOnce is how many scopes one statement asks for; a batch has mostly one.
const scopesAtOnce = 1000

// lows are the low-water marks of the scopes of those marks that ask, by scope.
func (l Lists) lows(ctx context.Context, marks []store.Mark) (map[int64]sqlform.Low, error) {
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

// JudgeAges judges which fresh marks are older than what is kept. It is a statement
// behind the one that marks: what that waited for may be the end of a reaper, whose
// low-water mark a statement that began before it does not see.
func (l Lists) JudgeAges(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	lows, err := l.lows(ctx, marks)
	if err == nil {
		sqlform.JudgeAges(marks, lows, verdicts)
	}
	return err
}
