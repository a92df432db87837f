// Package seals stores the audit chain: a hash chain over audit records, with one line (a seal) for each record; see
// internal/audit.
package seals

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements admin.Auditor.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// The default number of seals or audit records that one call reads or writes.
const mostSealed = 1000

// Seal implements admin.Auditor. Before it opens a transaction, Seal checks whether an audit record without a seal
// exists.
func (s *Store) Seal(ctx context.Context, o admin.Sealing) (done admin.Sealed, err error) {
	o.Most = cmp.Or(max(o.Most, 0), mostSealed)
	acts, _, err := nextUnsealed(ctx, s.db, s.db.Pool, o.Whole, 1)
	if err != nil || len(acts) == 0 {
		return done, s.db.Answer("seal", err)
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		done = admin.Sealed{}
		if err := sealTurn(ctx, s.db, tx); err != nil {
			return err
		}
		lines, err := seal(ctx, s.db, tx, o)
		done.Lines = lines
		return err
	})
	if errors.Is(err, database.ErrElsewhere) {
		return admin.Sealed{Elsewhere: true}, nil
	}
	if err != nil {
		done = admin.Sealed{}
	}
	return done, s.db.Answer("seal", err)
}

// sealTurn makes this process the only process that writes seals, or returns database.ErrElsewhere. In SQLite, a write
// transaction already excludes other processes.
func sealTurn(ctx context.Context, db *database.DB, tx *sql.Tx) error {
	if db.Postgres == nil {
		return nil
	}
	var alone bool
	var settings [3]sql.NullString
	err := tx.QueryRowContext(ctx, db.Postgres.SealTurn).Scan(&settings[0], &settings[1], &settings[2], &alone)
	if err == nil && !alone {
		err = database.ErrElsewhere
	}
	return err
}

// seal writes a seal for each given audit record, and the new end of the audit chain.
func seal(ctx context.Context, db *database.DB, tx *sql.Tx, o admin.Sealing) (lines int, err error) {
	end, err := sealEnd(ctx, db, tx)
	if err == nil {
		err = audit.MaySeal(&o, end)
	}
	if err != nil {
		return 0, err
	}
	acts, at, err := nextUnsealed(ctx, db, tx, o.Whole, o.Most)
	if err != nil || len(acts) == 0 {
		return 0, err
	}
	for i, act := range acts {
		if o.At != nil {
			o.At(i)
		}
		line := audit.Next(o.Key, end, act, at)
		if err := writeSeal(ctx, db, tx, line); err != nil {
			return 0, err
		}
		end = audit.HeadOf(o.Key, line)
	}
	if o.At != nil {
		o.At(len(acts))
	}
	return len(acts), database.WriteIn(ctx, tx, sqlform.Seals, 1, db.SQL.SetSealEnd, end.Sequence, end.Keyed, end.Hash[:], end.Proof[:])
}

func writeSeal(ctx context.Context, db *database.DB, tx *sql.Tx, l admin.Seal) error {
	a := l.Act
	return database.WriteIn(ctx, tx, sqlform.Seals, 1, db.SQL.Seal, l.Sequence, a.Number, a.Row, a.Verb, a.Who, a.Why, a.Result,
		a.At.UnixMicro(), l.At.UnixMicro(), l.Keyed, l.Previous[:], l.Hash[:])
}

// nextUnsealed returns the next audit records without a seal, ordered by number, and the time of the
// database's clock.
func nextUnsealed(ctx context.Context, db *database.DB, in database.Queryer, whole bool, most int) (acts []store.Act, at time.Time, err error) {
	acts, err = database.List(ctx, in, db.SQL.Unsealed, func(rows *sql.Rows) (a store.Act, err error) {
		var acted, now int64
		err = rows.Scan(&a.Number, &a.Row, &a.Verb, &a.Who, &a.Why, &a.Result, &acted, &now)
		a.At, at = time.UnixMicro(acted), time.UnixMicro(now)
		return a, err
	}, whole, admin.SealWindow, most)
	return acts, at, err
}

// SealHead implements admin.Auditor.
func (s *Store) SealHead(ctx context.Context) (admin.SealHead, error) {
	end, err := sealEnd(ctx, s.db, s.db.Pool)
	return end, s.db.Answer("the end of the seals", err)
}

func sealEnd(ctx context.Context, db *database.DB, in database.Queryer) (end admin.SealHead, err error) {
	var hash, proof []byte
	err = in.QueryRowContext(ctx, db.SQL.SealEnd).Scan(&end.Sequence, &end.Keyed, &hash, &proof)
	if errors.Is(err, sql.ErrNoRows) {
		return end, nil
	}
	copy(end.Hash[:], hash)
	copy(end.Proof[:], proof)
	return end, err
}

// Seals implements admin.Auditor.
func (s *Store) Seals(ctx context.Context, after int64, limit int) ([]admin.AuditedSeal, error) {
	all, err := seals(ctx, s.db, after, cmp.Or(max(limit, 0), mostSealed))
	return all, s.db.Answer("seals", err)
}

func seals(ctx context.Context, s *database.DB, after int64, limit int) (all []admin.AuditedSeal, err error) {
	return database.List(ctx, s.Pool, s.SQL.Seals, func(rows *sql.Rows) (l admin.AuditedSeal, err error) {
		var acted, sealed int64
		var previous, hash []byte
		var number, row, nowAt sql.NullInt64
		var now [4]sql.NullString
		err = rows.Scan(&l.Sequence, &l.Act.Number, &l.Act.Row, &l.Act.Verb, &l.Act.Who, &l.Act.Why, &l.Act.Result, &acted, &sealed, &l.Keyed, &previous, &hash,
			&number, &row, &now[0], &now[1], &now[2], &now[3], &nowAt)
		l.Act.At, l.At = time.UnixMicro(acted), time.UnixMicro(sealed)
		copy(l.Previous[:], previous)
		copy(l.Hash[:], hash)
		if number.Valid {
			l.Now = &store.Act{Number: number.Int64, Row: row.Int64, Verb: now[0].String, Who: now[1].String, Why: now[2].String, Result: now[3].String, At: time.UnixMicro(nowAt.Int64)}
		}
		return l, err
	}, after, limit)
}

// AuditedActs implements admin.Auditor.
func (s *Store) AuditedActs(ctx context.Context, after int64, limit int) ([]admin.AuditedAct, error) {
	all, err := auditedActs(ctx, s.db, after, cmp.Or(max(limit, 0), mostSealed))
	return all, s.db.Answer("acts", err)
}

func auditedActs(ctx context.Context, s *database.DB, after int64, limit int) (all []admin.AuditedAct, err error) {
	return database.List(ctx, s.Pool, s.SQL.AuditedActs, func(rows *sql.Rows) (admin.AuditedAct, error) {
		var a admin.AuditedAct
		var at int64
		err := rows.Scan(&a.Number, &a.Row, &a.Verb, &a.Who, &a.Why, &a.Result, &at, &a.Sequence)
		a.At = time.UnixMicro(at)
		return a, err
	}, after, limit)
}
