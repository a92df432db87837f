package admin

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/store"
)

// Resolution is the finding about a row with an unknown outcome.
type Resolution uint8

// The resolutions.
const (
	// ResolvedDone: the effect exists.
	ResolvedDone Resolution = iota + 1
	// ResolvedNotDone: none of the calls had an effect.
	ResolvedNotDone
)

// String is the resolution's word in commands.
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

// Resolver is implemented by an Inbox with Leases in which operators can resolve unknown outcomes. Each change
// is recorded with an audit record, as by an Inbox, whose Result is the Resolution. A Requeuer that is a
// Resolver rejects, with semel.ErrState, a row that was parked with semel.ReasonOutcomeUnknown, because a
// retry could repeat the call.
type Resolver interface {
	// Resolve completes rows and marks them as Applied (ResolvedDone), or clears their calls and makes them
	// due now with Waiting markers (ResolvedNotDone). The rows must be parked, dead-lettered or waiting for
	// a retry, and have an unknown outcome. Resolve returns one error for each row, as a Requeuer does.
	// semel.ErrConflict: the identity is applied, or another row of it waits.
	Resolve(ctx context.Context, r Resolution, a store.Act, rows ...store.RowRevision) []error
}
