package sqlhandler

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/pgxstore"
)

// mostWatched is how many runs of a statement without rows are looked at, to
// warn of one that never changes a row: looking costs its batch a round trip.
const mostWatched = 100

// watched counts, by statement, the runs that were looked at.
type watched []atomic.Int64

func newWatched(statements int) watched { return make(watched, statements) }

func (w watched) take(i int) bool { return w[i].Load() < mostWatched && w[i].Add(1) <= mostWatched }

// Queue queues the statements for m: they are sent together with those of the
// other messages of the batch. What a statement must change is judged by the
// server where it can, else when the results are there, before the commit.
//
// A violation of the business key is an error of the commit here, which nobody
// can call a duplicate any more: consumers with one use Handle.
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

// servers says that the server itself can judge the rows: one row, of a statement that fits
// into another, and an ending of the message that is not a failed attempt.
func (s *statement) servers() bool {
	return s.rows != nil && *s.rows == 1 && s.otherwise != OtherwiseFail && s.simple
}
