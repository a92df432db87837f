package sqlhandler

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/pgxstore"
)

// mostWatched limits the checked runs of a statement without Rows. The check warns of statements that
// never change a row; it costs the batch a round trip.
const mostWatched = 100

// watched counts the checked runs, by statement.
type watched []atomic.Int64

func newWatched(statements int) watched { return make(watched, statements) }

func (w watched) take(i int) bool { return w[i].Load() < mostWatched && w[i].Add(1) <= mostWatched }

// Queue queues the statements for m. They are sent together with those of the other messages of the
// batch. The server checks the number of changed rows if it can; otherwise the results are checked
// before the commit.
//
// A violation of the business key is an error of the commit here, too late to count as a duplicate.
// Consumers with a business key use Handle.
func (h *Handler) Queue(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
	values, err := h.values(m)
	if err != nil {
		return err
	}
	for i := range h.statements {
		h.queue(q, m, i, values)
	}
	return q.Err()
}

func (h *Handler) queue(q *pgxstore.Queue, m *semel.Message, i int, values []any) {
	s := &h.statements[i]
	args := s.bind(values)
	switch {
	case s.servers() && s.otherwise == OtherwiseUnmet:
		q.ExecOne(s.text, args...)
	case s.servers():
		q.ExecOneOr(s.ends(fmt.Errorf("%s changed another number of rows than 1", s.label)), s.text, args...)
	case s.rows != nil || s.changes && h.noEffect != nil && h.watched.take(i):
		q.Query(s.text, args...).Do(func(rows pgx.Rows) error {
			rows.Close()
			if err := rows.Err(); err != nil {
				return fmt.Errorf("%s: %w", s.label, err)
			}
			return h.compare(m, i, rows.CommandTag().RowsAffected())
		})
	default:
		q.Exec(s.text, args...)
	}
}

// servers reports whether the server itself can check the rows: exactly one row, a statement that can
// be wrapped, and an outcome other than a failed attempt.
func (s *statement) servers() bool {
	return s.rows != nil && *s.rows == 1 && s.otherwise != OtherwiseFail && s.simple
}
