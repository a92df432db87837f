package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Derivations implements admin.Derivations.
func (s *Store) Derivations(ctx context.Context, consumer string) ([]admin.Derivation, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Derivations, []byte(consumer))
	if err != nil {
		return nil, s.blameless("derivations", err)
	}
	defer rows.Close()
	var all []admin.Derivation
	for rows.Next() {
		var name, text []byte
		var at int64
		d := admin.Derivation{}
		if err := rows.Scan(&name, &d.Generation, &text, &d.Former, &d.Retired, &at); err != nil {
			return nil, s.blameless("derivations", err)
		}
		d.Consumer, d.Text, d.First = string(name), string(text), time.UnixMilli(at)
		all = append(all, d)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("derivations", err)
	}
	return all, nil
}

// AddDerivation implements admin.Derivations.
func (s *Store) AddDerivation(ctx context.Context, d admin.Derivation) (added bool, err error) {
	if d.Generation != 0 && s.days != nil {
		return false, fmt.Errorf("sqlstore: the markers of consumer %s are kept by day, by the time of ids of one derivation: %w", d.Consumer, semel.ErrUnsupported)
	}
	if d.Generation != 0 && !s.marksAlone() {
		return false, fmt.Errorf("sqlstore: the identities of consumer %s are marked in an adopted table, too, which keeps those of one derivation: %w", d.Consumer, semel.ErrUnsupported)
	}
	added, err = s.changed(ctx, s.sql.AddDerivation, []byte(d.Consumer), d.Generation, []byte(d.Text), d.Former)
	if err != nil {
		return false, s.blameless("derivation", err)
	}
	return added, nil
}

// changed runs a statement in a transaction and reports whether it changed a row.
func (s *Store) changed(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		changed, err = changedIn(ctx, tx, statement, args...)
		return err
	})
	return changed, err
}

func changedIn(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// RetireDerivation implements admin.Derivations.
func (s *Store) RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		changed, err := changedIn(ctx, tx, s.sql.RetireDerivation, retired, []byte(consumer), generation)
		if err == nil && !changed {
			err = fmt.Errorf("generation %d of consumer %s: %w", generation, consumer, semel.ErrChanged)
		}
		if err == nil && retired {
			_, err = tx.ExecContext(ctx, s.sql.ForgetFormer, []byte(consumer), generation)
		}
		if err == nil {
			err = s.record(ctx, tx, a, 0, "done")
		}
		return err
	})
	return s.answer("retire", err)
}

// Owner implements admin.Derivations.
func (s *Store) Owner(ctx context.Context, consumer string) (string, error) {
	var owner []byte
	err := s.db.QueryRowContext(ctx, s.sql.Owner, []byte(consumer)).Scan(&owner)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", s.blameless("owner", err)
	}
	return string(owner), nil
}

// SetOwner implements admin.Derivations.
func (s *Store) SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if was == "" {
			if set, err = changedIn(ctx, tx, s.sql.NewOwner, []byte(consumer), []byte(owner)); set || err != nil {
				return err
			}
		}
		set, err = changedIn(ctx, tx, s.sql.ChangeOwner, []byte(owner), []byte(consumer), []byte(was))
		return err
	})
	if err != nil {
		return false, s.blameless("owner", err)
	}
	return set, nil
}
