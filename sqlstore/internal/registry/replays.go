package registry

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// The default limit of ReplaysOf.
const mostReplays = 1000

// NewReplay implements admin.Replays.
func (s *Store) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	told, err := sqlform.Told(r.Progress)
	if err != nil {
		return 0, s.db.Answer("new replay", err)
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, s.db.SQL.NewReplay, []byte(r.Consumer), r.Generation, string(r.Kind), r.Effects, sqlform.Plain(a.Who), sqlform.Plain(a.Why),
			int64(t), lease.Milliseconds(), told).Scan(&r.Number)
		if errors.Is(err, sql.ErrNoRows) {
			return cmp.Or(soleReplay(ctx, s.db, tx, &r), admin.ErrReplayOpen)
		}
		if err != nil {
			return err
		}
		return s.db.Record(ctx, tx, sqlform.OfReplay(a, &r), 0, "done")
	})
	return r.Number, s.db.Answer("new replay", err)
}

// soleReplay returns an error if the consumer has another open replay in the same generation.
func soleReplay(ctx context.Context, db *database.DB, tx *sql.Tx, of *admin.Replay) error {
	var number int64
	err := tx.QueryRowContext(ctx, db.SQL.OpenReplay, []byte(of.Consumer), of.Generation, of.Number).Scan(&number)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("replay %d: %w", number, admin.ErrReplayOpen)
}

// changeReplay changes a replay. If the verb of the audit record a is not empty, changeReplay also writes this audit
// record.
func changeReplay(ctx context.Context, db *database.DB, number int64, a store.Act, do func(tx *sql.Tx, r *sqlform.Replay, now time.Time) error) (r sqlform.Replay, err error) {
	err = db.Write(ctx, func(tx *sql.Tx) error {
		var now int64
		err := tx.QueryRowContext(ctx, db.SQL.LockReplay, number).Scan(&now)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("replay %d: %w", number, admin.ErrNoReplay)
		}
		if err != nil {
			return err
		}
		if r, err = replay(ctx, db, tx, number); err != nil {
			return err
		}
		if err := do(tx, &r, time.UnixMilli(now)); err != nil {
			return err
		}
		if err := setReplay(ctx, db, tx, &r); err != nil || a.Verb == "" {
			return err
		}
		return db.Record(ctx, tx, sqlform.OfReplay(a, &r.Replay), 0, "done")
	})
	return r, err
}

func setReplay(ctx context.Context, db *database.DB, tx *sql.Tx, r *sqlform.Replay) error {
	told, err := sqlform.Told(r.Progress)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, db.SQL.SetReplay, r.Number, string(r.State), int64(r.Token), r.Left.Milliseconds(), told,
		sqlform.Plain(r.Stop.By), sqlform.Plain(r.Stop.Why), sinceEpoch(r.Stop.At), sinceEpoch(r.Saved), sinceEpoch(r.Ended))
	return err
}

// sinceEpoch converts a time to milliseconds since 1970, and the zero time to 0.
func sinceEpoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// replay reads one replay.
func replay(ctx context.Context, db *database.DB, in database.Queryer, number int64) (sqlform.Replay, error) {
	all, err := replays(ctx, db, in, number, "", 1)
	if err != nil {
		return sqlform.Replay{}, err
	}
	if len(all) == 0 {
		return sqlform.Replay{}, fmt.Errorf("replay %d: %w", number, admin.ErrNoReplay)
	}
	return all[0], nil
}

func replays(ctx context.Context, db *database.DB, in database.Queryer, number int64, consumer string, limit int) (all []sqlform.Replay, err error) {
	return database.List(ctx, in, db.SQL.Replays, scanReplay, number, []byte(consumer), limit)
}

func scanReplay(rows *sql.Rows) (r sqlform.Replay, err error) {
	var consumer []byte
	var kind, state, told string
	var started, stopped, left, saved, ended, token int64
	err = rows.Scan(&r.Number, &consumer, &r.Generation, &kind, &r.Effects, &r.Start.By, &r.Start.Why, &started, &state,
		&r.Stop.By, &r.Stop.Why, &stopped, &token, &left, &told, &saved, &ended)
	if err != nil {
		return r, err
	}
	r.Consumer, r.Kind, r.State, r.Token = string(consumer), admin.ReplayKind(kind), admin.ReplayState(state), store.Token(token)
	r.Start.At, r.Stop.At, r.Saved, r.Ended = database.MomentOf(started), database.MomentOf(stopped), database.MomentOf(saved), database.MomentOf(ended)
	if !r.State.Ended() {
		r.Left = time.Duration(left) * time.Millisecond
	}
	if err := sqlform.Untold(told, &r.Progress); err != nil {
		return r, fmt.Errorf("the progress of replay %d cannot be read: %w", r.Number, err)
	}
	return r, nil
}

// TakeReplay implements admin.Replays.
func (s *Store) TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	r, err := changeReplay(ctx, s.db, number, a, func(tx *sql.Tx, r *sqlform.Replay, _ time.Time) error {
		if err := r.Take(t, lease); err != nil {
			return err
		}
		return soleReplay(ctx, s.db, tx, &r.Replay)
	})
	return r.Replay, s.db.Answer("take replay", err)
}

// SaveReplay implements admin.Replays.
func (s *Store) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	r, err := changeReplay(ctx, s.db, number, store.Act{}, func(_ *sql.Tx, r *sqlform.Replay, now time.Time) error { return r.Save(t, lease, p, now) })
	return r.State, s.db.Answer("save replay", err)
}

// EndReplay implements admin.Replays.
func (s *Store) EndReplay(ctx context.Context, number int64, t store.Token, to admin.ReplayState, p admin.ReplayProgress, a store.Act) error {
	_, err := changeReplay(ctx, s.db, number, a, func(_ *sql.Tx, r *sqlform.Replay, now time.Time) error { return r.End(t, to, p, now) })
	return s.db.Answer("end replay", err)
}

// StopReplay implements admin.Replays.
func (s *Store) StopReplay(ctx context.Context, number int64, a store.Act) (admin.Replay, error) {
	r, err := changeReplay(ctx, s.db, number, a, func(_ *sql.Tx, r *sqlform.Replay, now time.Time) error { return r.StopBy(a, now) })
	return r.Replay, s.db.Answer("stop replay", err)
}

// Replay implements admin.Replays.
func (s *Store) Replay(ctx context.Context, number int64) (admin.Replay, error) {
	r, err := replay(ctx, s.db, s.db.Pool, number)
	return r.Replay, s.db.Answer("replay", err)
}

// ReplaysOf implements admin.Replays.
func (s *Store) ReplaysOf(ctx context.Context, consumer string, limit int) ([]admin.Replay, error) {
	found, err := replays(ctx, s.db, s.db.Pool, 0, consumer, cmp.Or(max(limit, 0), mostReplays))
	all := make([]admin.Replay, len(found))
	for i := range found {
		all[i] = found[i].Replay
	}
	return all, s.db.Answer("replays", err)
}
