package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
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
		return errors.New("semel: say whether it was done or not; what is unknown stays so by itself")
	}
	return nil
}

// Resolver is implemented by an Inbox with Calls in which operators can resolve unknown outcomes. Acts are
// recorded as those of an Inbox, with the Resolution as their Result. A Requeuer that is a Resolver
// rejects, with semel.ErrState, a row that was parked with semel.ReasonOutcomeUnknown, because a retry
// could repeat the call.
type Resolver interface {
	// Resolve completes a row and marks it as Applied (ResolvedDone), or clears its calls and makes it
	// due now with a Waiting marker (ResolvedNotDone). The row must be parked, dead-lettered or
	// waiting for a retry. semel.ErrChanged: the row has another revision. semel.ErrState: its state
	// does not allow it, or it has no unknown outcome. semel.ErrConflict: its identity is applied, or
	// another row of it waits. Nothing is changed then.
	Resolve(ctx context.Context, number, revision int64, r Resolution, a store.Act) error
}

// MayResolve returns an error that wraps semel.ErrState if a row in this state cannot be resolved, or has
// no unknown outcome.
func MayResolve(number int64, state store.RowState, unknown bool) error {
	if _, legal := state.After(store.RowResolved); !legal {
		return fmt.Errorf("row %d is %s, and is resolved when it is parked, waits for its time, or is dead-lettered: %w", number, state, semel.ErrState)
	}
	if !unknown {
		return fmt.Errorf("row %d: of its calls no outcome is unknown: %w", number, semel.ErrState)
	}
	return nil
}
