package sqlhandler

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/pgxstore"
)

// mostWatched is how many times Semel checks a statement without Rows. Checking a statement shows whether the
// statement never changes a row, and costs one round trip per batch.
const mostWatched = 100

// checkCounts has the number of checks of each statement.
type checkCounts []atomic.Int64

func newWatched(statements int) checkCounts { return make(checkCounts, statements) }

func (w checkCounts) take(i int) bool { return w[i].Load() < mostWatched && w[i].Add(1) <= mostWatched }

// Queue queues the statements for m. The statements of all messages of a batch are sent together. If
// possible, the server compares the number of changed rows with the required number. If the server cannot
// compare, Semel compares the numbers before the commit.
//
// With Queue, a violation of the business key would only appear at the commit, too late to treat the message
// as a duplicate. Consumers with a business key therefore use Handle instead of Queue.
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
	case s.isServerChecked() && s.otherwise == OtherwiseUnmet:
		q.ExecOne(s.text, args...)
	case s.isServerChecked():
		q.ExecOneOr(s.rowCountError(fmt.Errorf("%s changed another number of rows than 1", s.label)), s.text, args...)
	case s.rows != nil || s.countsRows && h.noEffect != nil && h.checkCounts.take(i):
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

// isServerChecked reports whether the server can compare the number of changed rows. The statement must be simple,
// must change exactly one row, and must not have the outcome OtherwiseFail.
func (s *statement) isServerChecked() bool {
	return s.rows != nil && *s.rows == 1 && s.otherwise != OtherwiseFail && s.isWrappable
}
