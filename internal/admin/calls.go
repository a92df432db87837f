package admin

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/store"
)

// Resolution is what an operator found out about a row with an unknown outcome.
type Resolution uint8

const (
	// ResolvedDone means that the effect exists.
	ResolvedDone Resolution = iota + 1
	// ResolvedNotDone means that none of the calls had an effect.
	ResolvedNotDone
)

// String returns the name of the resolution in commands.
func (r Resolution) String() string {
	return enum.Name([]string{ResolvedDone: "done", ResolvedNotDone: "not-done"}, r, "Resolution")
}

// Fits returns an error if r is not a Resolution.
func (r Resolution) Fits() error {
	if r != ResolvedDone && r != ResolvedNotDone {
		return errors.New("semel: the resolution must be done or not-done; an outcome that stays unknown needs no resolution")
	}
	return nil
}

// Resolver is implemented by an Inbox with Leases in which operators can resolve unknown outcomes. Each change writes
// an audit record, whose Result is the Resolution. A Requeuer that is a Resolver rejects rows that were parked with
// semel.ReasonOutcomeUnknown (semel.ErrState), because a retry could repeat the call.
type Resolver interface {
	// Resolve records the outcome of rows whose outcome was unknown. ResolvedDone completes the rows and marks them as
	// Applied. ResolvedNotDone removes the records of the rows' calls and makes the rows due now, with Waiting markers.
	// The rows must have an unknown outcome, and must be parked, dead-lettered or waiting for a retry. Resolve returns
	// one error for each row, as a Requeuer does. semel.ErrConflict means that the identity is applied, or that another
	// row of the identity waits.
	Resolve(ctx context.Context, r Resolution, a store.Act, rows ...store.RowRevision) []error
}
