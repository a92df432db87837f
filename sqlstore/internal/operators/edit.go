package operators

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Edit implements admin.Editor.
func (s *Store) Edit(ctx context.Context, number, revision int64, body []byte, kind string, a store.Act) error {
	db, err := daily.OfRow(ctx, s.db, number)
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *sql.Tx) error {
		r, err := Look(ctx, db, tx, number, revision)
		if err != nil {
			return err
		}
		row, stepped := r.toStoredRow(), false
		var kept []byte
		var in encryptionColumns
		if err := tx.QueryRowContext(ctx, db.SQL.Editable, number).Scan(&row.Surrogate, &stepped, &kept, &in.key, &in.long, &in.consumer, &in.source, &in.envelope); err != nil {
			return err
		}
		if stepped {
			row.Steps = make([]store.StepDone, 1)
		}
		was, err := in.show(db, kept)
		if err != nil {
			return fmt.Errorf("row %d: %w", number, err)
		}
		if err := admin.MayEdit(row, body); err != nil {
			return err
		}
		if err := r.mayRun(nil); err != nil {
			return err
		}
		if body == nil {
			body = []byte{} // NULL would mean that the body was removed
		}
		before, after, secret, err := db.Crypt.EditSums(number, was, body)
		if err != nil {
			return fmt.Errorf("row %d: %w", number, err)
		}
		change := admin.Change{Before: was, After: body, Secret: secret}
		if err := in.retype(ctx, db, tx, r, kind, &change); err != nil {
			return err
		}
		if kept == nil {
			kept = []byte{}
		}
		hidden, err := in.hide(db, body)
		if err != nil {
			return fmt.Errorf("row %d: %w", number, err)
		}
		if err := database.WriteIn(ctx, tx, sqlform.Edits, 1, db.SQL.KeepEdit, number, sqlform.Plain(a.Who), kept, before, len(was), after, len(body)); err != nil {
			return err
		}
		if err := Set(ctx, tx, r, db.SQL.EditRow, hidden); err != nil {
			return err
		}
		return db.Record(ctx, tx, admin.EditAct(a, change), number, "done")
	})
	return db.Answer("edit", err)
}

// Edits implements admin.Editor.
func (s *Store) Edits(ctx context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	var unread error
	all, err := database.List(ctx, s.db.Pool, s.db.SQL.Edits, func(rows *sql.Rows) (e admin.StoredEdit, err error) {
		var at int64
		var before, after, kept []byte
		var in encryptionColumns
		if err := rows.Scan(&e.Number, &at, &e.Who, &e.Removed, &kept, &before, &e.SizeBefore, &after, &e.SizeAfter, &in.key, &in.long, &in.consumer, &in.source, &in.envelope); err != nil {
			return e, err
		}
		if e.Was, err = in.show(s.db, kept); err != nil {
			unread = fmt.Errorf("row %d: edit %d: %w", number, e.Number, err)
			return e, unread
		}
		e.At = time.UnixMilli(at)
		e.Before, e.After = s.db.Crypt.EditSum(number, before), s.db.Crypt.EditSum(number, after)
		return e, nil
	}, number, bodies)
	switch {
	case unread != nil:
		return nil, unread
	case err != nil:
		return nil, s.db.Blameless("edits", err)
	}
	return all, nil
}

// encryptionColumns contains the columns for the encryption of a row's body: whether the body is encrypted, and the
// identity to which the encryption is bound.
type encryptionColumns struct{ key, long, consumer, source, envelope []byte }

func (e *encryptionColumns) of() semel.Key {
	id, _ := sqlform.OriginalID(e.key, e.long)
	return semel.Key{Consumer: string(e.consumer), Source: string(e.source), ID: id}
}

func (e *encryptionColumns) hide(s *database.DB, body []byte) ([]byte, error) {
	return s.Crypt.Body(e.of(), e.envelope, body)
}

func (e *encryptionColumns) show(s *database.DB, kept []byte) ([]byte, error) {
	return s.Crypt.ShowBody(e.of(), e.envelope, kept)
}

// retype stores the type of a row whose edit changes the type, and describes the change. If kind is empty, the row
// keeps its type.
func (e *encryptionColumns) retype(ctx context.Context, db *database.DB, tx *sql.Tx, r *actedRow, kind string, c *admin.Change) error {
	if kind == "" {
		return nil
	}
	next, err := db.Crypt.Retype(e.of(), e.envelope, kind)
	if err != nil {
		return fmt.Errorf("row %d: %w", r.Number, err)
	}
	if c.TypeBefore, c.TypeAfter = next.Was, kind; next.Was == kind {
		return nil
	}
	return Set(ctx, tx, r, db.SQL.RetypeRow, next.Envelope, next.Column)
}

// ForgetEdits removes the records of edits whose rows were removed. Only SQLite needs ForgetEdits; PostgreSQL removes
// the records of edits together with the rows.
func ForgetEdits(ctx context.Context, db *database.DB, tx *sql.Tx) error {
	if db.SQLite == nil {
		return nil
	}
	if _, err := tx.ExecContext(ctx, db.SQLite.ForgetEditBodies); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, db.SQLite.ForgetEdits)
	return err
}
