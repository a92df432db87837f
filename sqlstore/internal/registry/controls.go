// Package registry stores the controls, derivations (rules that form identities), owners, generations and replays of
// consumers.
package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements admin.Controls, admin.Derivations, admin.Generations and admin.Replays.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// Control implements admin.Controls.
func (s *Store) Control(ctx context.Context, consumer string) (admin.Control, error) {
	var c admin.Control
	var paused, limited int64
	err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Control, []byte(consumer)).Scan(&c.Paused, &c.Pause.By, &c.Pause.Why, &paused, &c.PerSecond, &c.Limit.By, &c.Limit.Why, &limited)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return admin.Control{}, nil
	case err != nil:
		return admin.Control{}, s.db.Blameless("control of "+consumer, err)
	}
	c.Pause.At, c.Limit.At = database.MomentOf(paused), database.MomentOf(limited)
	return c, nil
}

// Pause implements admin.Controls.
func (s *Store) Pause(ctx context.Context, consumer string, paused bool, a store.Act) error {
	return order(ctx, s.db, consumer, s.db.SQL.SetPause, paused, a, sqlform.OfConsumer(a, consumer))
}

// Limit implements admin.Controls.
func (s *Store) Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error {
	if err := sqlform.LimitFault(perSecond); err != nil {
		return err
	}
	return order(ctx, s.db, consumer, s.db.SQL.SetLimit, int64(perSecond), a, sqlform.OfLimit(a, consumer, perSecond))
}

// order writes a setting of a consumer, with an audit record.
func order(ctx context.Context, db *database.DB, consumer, statement string, value any, a, recorded store.Act) error {
	err := db.Write(ctx, func(tx *sql.Tx) error {
		if err := database.ExecOne(ctx, tx, sqlform.ErrControlUnwritten, statement, []byte(consumer), value, sqlform.Plain(a.Who), sqlform.Plain(a.Why)); err != nil {
			return err
		}
		return db.Record(ctx, tx, recorded, 0, "done")
	})
	return db.Answer(a.Verb+" of "+consumer, err)
}

// Consumers implements admin.Controls.
func (s *Store) Consumers(ctx context.Context) ([]string, error) {
	names, err := database.List(ctx, s.db.Pool, s.db.SQL.Consumers, func(rows *sql.Rows) (string, error) {
		var name []byte
		err := rows.Scan(&name)
		return string(name), err
	})
	return names, s.db.Answer("consumers", err)
}

// Derivations implements admin.Derivations.
func (s *Store) Derivations(ctx context.Context, consumer string) ([]admin.Derivation, error) {
	all, err := database.List(ctx, s.db.Pool, s.db.SQL.Derivations, func(rows *sql.Rows) (admin.Derivation, error) {
		var name, text []byte
		var at int64
		d := admin.Derivation{}
		err := rows.Scan(&name, &d.Generation, &text, &d.Former, &d.Retired, &at)
		d.Consumer, d.Text, d.First = string(name), string(text), time.UnixMilli(at)
		return d, err
	}, []byte(consumer))
	return all, s.db.Answer("derivations", err)
}

// AddDerivation implements admin.Derivations.
func (s *Store) AddDerivation(ctx context.Context, d admin.Derivation) (added bool, err error) {
	if d.Generation != 0 && s.db.Days != nil {
		return false, fmt.Errorf("sqlstore: the markers of consumer %s are kept by day, which supports only one derivation of ids: %w", d.Consumer, semel.ErrUnsupported)
	}
	if d.Generation != 0 && !s.db.MarksAlone() {
		return false, fmt.Errorf("sqlstore: the identities of consumer %s are also marked in an adopted table, which supports only one derivation: %w", d.Consumer, semel.ErrUnsupported)
	}
	added, err = s.db.Changed(ctx, s.db.SQL.AddDerivation, []byte(d.Consumer), d.Generation, []byte(d.Text), d.Former)
	if err != nil {
		return false, s.db.Blameless("derivation", err)
	}
	return added, nil
}

// RetireDerivation implements admin.Derivations.
func (s *Store) RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		changed, err := database.ChangedIn(ctx, tx, s.db.SQL.RetireDerivation, retired, []byte(consumer), generation)
		if err == nil && !changed {
			err = fmt.Errorf("generation %d of consumer %s: %w", generation, consumer, semel.ErrChanged)
		}
		if err == nil && retired {
			_, err = tx.ExecContext(ctx, s.db.SQL.ForgetFormer, []byte(consumer), generation)
		}
		if err == nil {
			err = s.db.Record(ctx, tx, a, 0, "done")
		}
		return err
	})
	return s.db.Answer("retire", err)
}

// Owner implements admin.Derivations.
func (s *Store) Owner(ctx context.Context, consumer string) (string, error) {
	var owner []byte
	err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Owner, []byte(consumer)).Scan(&owner)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", s.db.Blameless("owner", err)
	}
	return string(owner), nil
}

// SetOwner implements admin.Derivations.
func (s *Store) SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error) {
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if was == "" {
			if set, err = database.ChangedIn(ctx, tx, s.db.SQL.NewOwner, []byte(consumer), []byte(owner)); set || err != nil {
				return err
			}
		}
		set, err = database.ChangedIn(ctx, tx, s.db.SQL.ChangeOwner, []byte(owner), []byte(consumer), []byte(was))
		return err
	})
	if err != nil {
		return false, s.db.Blameless("owner", err)
	}
	return set, nil
}
