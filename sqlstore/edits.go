package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

var _ contract.Editor = (*Store)(nil)

// Edit implements contract.Editor.
func (s *Store) Edit(ctx context.Context, number, revision int64, body []byte, a contract.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		e := contract.Edited{State: r.state}
		var was []byte
		if err := tx.QueryRowContext(ctx, s.sql.Editable, number).Scan(&e.Surrogate, &e.Stepped, &e.UnknownOutcome, &e.BodyRemoved, &was); err != nil {
			return err
		}
		if err := contract.MayEdit(number, e, body); err != nil {
			return err
		}
		if r.outcome == contract.Applied || r.outcome == contract.Waiting {
			return fmt.Errorf("row %d: %w", number, semel.ErrConflict)
		}
		if body == nil {
			body = []byte{} // no body is NULL, which is one that was removed
		}
		before, after := sha256.Sum256(was), sha256.Sum256(body)
		if was == nil {
			was = []byte{}
		}
		if _, err := tx.ExecContext(ctx, s.sql.KeepEdit, number, sqlform.Plain(a.Who), was, before[:], len(was), after[:], len(body)); err != nil {
			return err
		}
		if err := s.set(ctx, tx, r, s.sql.EditRow, body); err != nil {
			return err
		}
		return s.record(ctx, tx, contract.EditAct(a, was, body), number, "done")
	})
	return s.answer("edit", err)
}

// Edits implements contract.Editor.
func (s *Store) Edits(ctx context.Context, number int64, bodies bool) ([]contract.StoredEdit, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Edits, number, bodies)
	if err != nil {
		return nil, s.blameless("edits", err)
	}
	defer rows.Close()
	var all []contract.StoredEdit
	for rows.Next() {
		var e contract.StoredEdit
		var at int64
		var before, after []byte
		if err := rows.Scan(&e.Number, &at, &e.Who, &e.Removed, &e.Was, &before, &e.SizeBefore, &after, &e.SizeAfter); err != nil {
			return nil, s.blameless("edits", err)
		}
		e.At = time.UnixMilli(at)
		copy(e.Before[:], before)
		copy(e.After[:], after)
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("edits", err)
	}
	return all, nil
}

// forgetEdits removes of edits what SQLite does not remove with their rows.
func (s *Store) forgetEdits(ctx context.Context, tx *sql.Tx) error {
	if s.sqlite == nil {
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.sqlite.ForgetEditBodies); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.sqlite.ForgetEdits)
	return err
}
