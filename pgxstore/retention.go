package pgxstore

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// askAges is the statement that reads the low-water marks of the scopes of those marks
// that ask into lows, nil if none does. It stands behind the one that marks: what that
// waited for may be the end of a reaper, whose low-water mark a statement that began
// before it does not see.
func (s *Store) askAges(marks []store.Mark, lows map[int64]sqlform.Low) *request {
	scopes := sqlform.Aged(marks)
	if len(scopes) == 0 {
		return nil
	}
	return &request{sql: s.sql.Low, args: []any{scopes}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			var scope, before, now int64
			if err := rows.Scan(&scope, &before, &now); err != nil {
				return err
			}
			lows[scope] = sqlform.Low{Before: time.UnixMicro(before), Now: time.UnixMicro(now)}
		}
		return rows.Err()
	}}
}

// Retain implements store.Reaper: it keeps what a consumer's policy says of how long its
// records are kept. semel.ErrSchema: an index is missing that the reaper needs.
func (t *tables) Retain(ctx context.Context, r store.Retention) error {
	return t.inner.Retain(ctx, r)
}

// Progressed implements store.Reaper: it records that a consumer works, and how far its
// lanes are.
func (t *tables) Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error {
	return t.inner.Progressed(ctx, consumer, lanes)
}

// ForgetLane implements store.Reaper: it removes what is recorded of a lane that will
// never be read again.
func (t *tables) ForgetLane(ctx context.Context, consumer, lane string, a store.Act) error {
	return t.inner.ForgetLane(ctx, consumer, lane, a)
}

// Retentions implements store.Reaper: what stands of a consumer, or with "" of all.
func (t *tables) Retentions(ctx context.Context, consumer string) ([]store.StoredRetention, error) {
	return t.inner.Retentions(ctx, consumer)
}

// Removed implements store.Reaper: up to where markers of a consumer may have been
// removed.
func (t *tables) Removed(ctx context.Context, consumer string) (time.Time, error) {
	return t.inner.Removed(ctx, consumer)
}

// Advance implements store.Reaper: it raises the low-water marks of a consumer to its
// cutoff.
func (t *tables) Advance(ctx context.Context, consumer string) (time.Time, error) {
	return t.inner.Advance(ctx, consumer)
}

// Reap implements store.Reaper: it removes what is below the low-water marks, some at a
// time.
func (t *tables) Reap(ctx context.Context, r store.Reaping) (store.Reaped, error) {
	return t.inner.Reap(ctx, r)
}

// PrintReaper writes SQL that makes a procedure which reaps, with the calls of it for these
// consumers, for a scheduler of the database's own. It asks the database nothing.
func (t *tables) PrintReaper(w io.Writer, consumers []string) error {
	return t.inner.PrintReaper(w, consumers)
}
