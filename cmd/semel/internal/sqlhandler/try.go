package sqlhandler

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel/pgxstore"
)

// Try asks the database to prepare each statement as Handle sends it, without running any. So a
// missing table or column is found before it costs messages. Try returns the index of the first
// refused statement, and the error.
func (h *Handler) Try(ctx context.Context, db *sql.DB) (statement int, err error) {
	for i := range h.statements {
		if err := h.statements[i].fits(ctx, db); err != nil {
			return i, err
		}
	}
	h.lookAtPlaces(ctx, db)
	return 0, nil
}

// TryQueued is Try for the statements as Queue sends them. A statement that the database accepts alone
// but not wrapped into the statement that counts its rows, such as an insert into a view with a rule,
// is checked by its result from then on. TryQueued must return before the first Queue.
func (h *Handler) TryQueued(ctx context.Context, db *sql.DB, store *pgxstore.Store) (statement int, err error) {
	for i := range h.statements {
		s := &h.statements[i]
		if s.servers() && prepares(ctx, db, store.One(s.text)) != nil {
			s.simple = false
		}
	}
	for i := range h.statements {
		if s := &h.statements[i]; !s.servers() || s.planned {
			if err := s.fits(ctx, db); err != nil {
				return i, err
			}
		}
	}
	h.lookAtPlaces(ctx, db)
	return 0, nil
}

// fits returns why the database refuses a statement.
func (s *statement) fits(ctx context.Context, db *sql.DB) error {
	if err := prepares(ctx, db, s.text); err != nil || !s.planned {
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
	return nil // an error with NULLs need not be one with values
}

// noUniqueKey is PostgreSQL's invalid_column_reference: no unique key has exactly the columns that an
// upsert names.
const noUniqueKey = "42P10"

func prepares(ctx context.Context, db *sql.DB, text string) error {
	prepared, err := db.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return prepared.Close()
}
