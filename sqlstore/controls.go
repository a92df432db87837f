package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Control implements admin.Controls.
func (s *Store) Control(ctx context.Context, consumer string) (admin.Control, error) {
	var c admin.Control
	var paused, limited int64
	err := s.db.QueryRowContext(ctx, s.sql.Control, []byte(consumer)).Scan(&c.Paused, &c.Pause.By, &c.Pause.Why, &paused, &c.PerSecond, &c.Limit.By, &c.Limit.Why, &limited)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return admin.Control{}, nil
	case err != nil:
		return admin.Control{}, s.blameless("control of "+consumer, err)
	}
	c.Pause.At, c.Limit.At = momentOf(paused), momentOf(limited)
	return c, nil
}

// momentOf is zero for 0.
func momentOf(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds)
}

// Pause implements admin.Controls.
func (s *Store) Pause(ctx context.Context, consumer string, paused bool, a store.Act) error {
	return s.order(ctx, consumer, s.sql.SetPause, paused, a, sqlform.OfConsumer(a, consumer))
}

// Limit implements admin.Controls.
func (s *Store) Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error {
	if err := sqlform.LimitFault(perSecond); err != nil {
		return err
	}
	return s.order(ctx, consumer, s.sql.SetLimit, int64(perSecond), a, sqlform.OfLimit(a, consumer, perSecond))
}

// order writes what is wanted of a consumer, with its record.
func (s *Store) order(ctx context.Context, consumer, statement string, value any, a, recorded store.Act) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, statement, []byte(consumer), value, sqlform.Plain(a.Who), sqlform.Plain(a.Why))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(sqlform.ErrControlUnwritten, err)
		}
		return s.record(ctx, tx, recorded, 0, "done")
	})
	return s.answer(a.Verb+" of "+consumer, err)
}

// Consumers implements admin.Controls.
func (s *Store) Consumers(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Consumers)
	if err != nil {
		return nil, s.blameless("consumers", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name []byte
		if err := rows.Scan(&name); err != nil {
			return nil, s.blameless("consumers", err)
		}
		names = append(names, string(name))
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("consumers", err)
	}
	return names, nil
}
