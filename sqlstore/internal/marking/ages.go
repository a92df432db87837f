package marking

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

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
