package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/internal/steps"
)

var errUnclaimedStep = errors.New("semel: a step runs only of a message that is claimed")

// step runs the next step of a claimed row and sets row.Stepped, which the commit writes. If an earlier run
// of the step was rolled back, step replaces the Stepped of that run.
func (h *Handler[Tx]) step(ctx context.Context, tx Tx, m *semel.Message, row *inbox.ClaimedRow, most int) error {
	if row == nil {
		return errUnclaimedStep
	}
	row.Stepped = nil
	done := row.Row.Steps
	next := &h.Steps[steps.Next(done)]
	output, err := next.Run(ctx, tx, m, done)
	if err != nil {
		return err
	}
	if len(output) > most {
		return semel.Permanent(fmt.Errorf("the output of step %q has %d bytes; at most %d are kept", next.Name, len(output), most))
	}
	row.Stepped = steps.With(done, next.Name, output)
	return nil
}

// hasFurtherSteps reports whether further steps follow for a row whose step has just run.
func (h *Handler[Tx]) hasFurtherSteps(row *inbox.ClaimedRow) bool {
	return row != nil && row.Stepped != nil && len(row.Stepped) < len(h.Steps)
}
