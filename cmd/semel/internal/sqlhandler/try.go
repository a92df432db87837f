package sqlhandler

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/pgxstore"
)

// Try asks the database to prepare each statement as Handle sends it, without
// running any: a missing table or column is found before it costs every
// message. It returns the index of the first statement that was refused, and
// the error.
func (h *Handler) Try(ctx context.Context, db *sql.DB) (statement int, err error) {
	for i := range h.statements {
		if err := prepares(ctx, db, h.statements[i].text); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// TryQueued is Try for the statements as Queue sends them. One that the
// database takes by itself and not inside the statement that counts its rows,
// such as an insert into a view with a rule, is judged by its answer from then
// on. It must return before the first Queue.
func (h *Handler) TryQueued(ctx context.Context, db *sql.DB, store *pgxstore.Store) (statement int, err error) {
	for i := range h.statements {
		s := &h.statements[i]
		if s.servers() && prepares(ctx, db, store.One(s.text)) != nil {
			s.simple = false
		}
	}
	for i := range h.statements {
		if s := &h.statements[i]; !s.servers() {
			if err := prepares(ctx, db, s.text); err != nil {
				return i, err
			}
		}
	}
	return 0, nil
}

func prepares(ctx context.Context, db *sql.DB, text string) error {
	prepared, err := db.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return prepared.Close()
}
