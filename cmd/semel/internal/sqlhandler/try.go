package sqlhandler

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel/pgxstore"
)

// Try lets the database prepare each statement in the form that Handle sends. Try runs no statement. By
// preparing statements, Try finds a missing table or column before messages fail. If the database rejects a
// statement, Try returns the statement's index and the error.
func (h *Handler) Try(ctx context.Context, db *sql.DB) (statement int, err error) {
	for i := range h.statements {
		if err := h.statements[i].check(ctx, db); err != nil {
			return i, err
		}
	}
	h.lookAtPlaces(ctx, db)
	return 0, nil
}

// TryQueued is like Try, but for statements in the form that Queue sends. A few statements cannot be wrapped
// to count rows, for instance an insert into a view with a rule. For a statement that cannot be wrapped,
// Semel itself compares the number of rows later. TryQueued must return before the first call of Queue.
func (h *Handler) TryQueued(ctx context.Context, db *sql.DB, store *pgxstore.Store) (statement int, err error) {
	for i := range h.statements {
		s := &h.statements[i]
		if s.isServerChecked() && tryPrepare(ctx, db, store.One(s.text)) != nil {
			s.isWrappable = false
		}
	}
	for i := range h.statements {
		if s := &h.statements[i]; !s.isServerChecked() || s.needsPlan {
			if err := s.check(ctx, db); err != nil {
				return i, err
			}
		}
	}
	h.lookAtPlaces(ctx, db)
	return 0, nil
}

// check returns the error with which the database rejects a statement, or nil.
func (s *statement) check(ctx context.Context, db *sql.DB) error {
	if err := tryPrepare(ctx, db, s.text); err != nil || !s.needsPlan {
		return err
	}
	rows, err := db.QueryContext(ctx, "explain "+s.text, make([]any, len(s.args))...)
	if err == nil {
		err = rows.Close()
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) && coded.SQLState() == noUniqueKey {
		return err
	}
	return nil // an error with NULL arguments may not occur with real values
}

// noUniqueKey is PostgreSQL's error code invalid_column_reference. An error with this code means that no
// unique key has exactly the columns of the upsert.
const noUniqueKey = "42P10"

func tryPrepare(ctx context.Context, db *sql.DB, text string) error {
	prepared, err := db.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return prepared.Close()
}
