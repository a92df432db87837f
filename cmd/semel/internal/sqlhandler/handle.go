package sqlhandler

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel"
)

// Handle runs the statements for m in tx. Handle does not end the transaction. If Handle returns an error,
// the caller rolls back the changes.
func (h *Handler) Handle(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
	values, err := h.values(m)
	if err != nil {
		return err
	}
	for i := range h.statements {
		if err := h.run(ctx, tx, m, i, values); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) run(ctx context.Context, tx *sql.Tx, m *semel.Message, i int, values []any) error {
	result, err := h.exec(ctx, tx, i, h.statements[i].bind(values))
	if err != nil {
		if h.violates != nil && h.violates(err) {
			return semel.Duplicate(err)
		}
		return fmt.Errorf("%s: %w", h.statements[i].label, err)
	}
	return h.checkResult(m, i, result)
}

// bind returns the arguments of the statement's placeholders.
func (s *statement) bind(values []any) []any {
	args := make([]any, len(s.args))
	for j, at := range s.args {
		args[j] = values[at]
	}
	return args
}

func (h *Handler) checkResult(m *semel.Message, i int, result sql.Result) error {
	s := &h.statements[i]
	if s.rows == nil && (!s.countsRows || h.noEffect == nil) {
		return nil
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("%s: %w", s.label, err)
	}
	return h.compare(m, i, changed)
}

// compare returns an error if statement i has changed more or fewer rows than its field Rows requires. The parameter
// changed is the number of rows that the statement has changed.
func (h *Handler) compare(m *semel.Message, i int, changed int64) error {
	s := &h.statements[i]
	switch {
	case s.rows != nil && changed != *s.rows:
		return s.unmet(changed)
	case s.rows == nil && changed == 0:
		h.noEffect(m, i)
	}
	return nil
}

func (s *statement) unmet(changed int64) error {
	return s.rowCountError(fmt.Errorf("%s changed %d rows, not %d", s.label, changed, *s.rows))
}

// rowCountError returns the error for a wrong number of changed rows. The parameter what describes the
// difference.
func (s *statement) rowCountError(what error) error {
	switch s.otherwise {
	case OtherwisePark:
		return &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonPrecondition, Err: what}
	case OtherwiseDiscard:
		return &semel.HandlerError{Decision: semel.DecideDiscard, Reason: semel.ReasonPrecondition, Err: what}
	case OtherwiseFail:
		return what
	}
	return semel.PreconditionFailed(what.Error())
}
