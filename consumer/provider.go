package consumer

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/enum"
)

// Provider describes the system that handlers call. Provider decides what happens to a message if the outcome
// of an earlier call is unknown. Within Window the call is repeated with the same key, which does no harm.
// After Window the call is not repeated. Lookup then determines the outcome. Without Lookup, the message is
// parked with semel.ReasonOutcomeUnknown until a person records the outcome.
type Provider struct {
	// Window is how long the other system remembers an idempotency key after the first call, by the store's
	// clock. Semel stops repeating the call one Timeout before the end of Window, so that no call arrives too
	// late. The default is 24 h. WindowAlways means that the other system never forgets a key. WindowNever
	// means that the other system knows no keys; calls with an unknown outcome are then never repeated.
	// Window must be longer than Timeout.
	Window time.Duration
	// Lookup, if not nil, asks the other system for the outcome of the calls for a message. Lookup is called
	// if the outcome of a call is unknown and Window has passed. The results of Lookup:
	//   - Happened: the message is completed without another call.
	//   - DidNotHappen: the call is made. If the outcome of that call is unknown too, Lookup is called again,
	//     because Window does not restart.
	//   - StillUnknown, or an error: the message is retried as Retry says. After its last attempt the message
	//     ends as Retry.OnExhausted says, with semel.ReasonOutcomeUnknown.
	//
	// Lookup and the call after Lookup share one Timeout.
	Lookup func(ctx context.Context, m *semel.Message) (LookupResult, error)
	// OnUnknown is the action for a message if the outcome of its call is unknown, the call may not be
	// repeated, and there is no Lookup. ActionPark, the default, parks the message for a person.
	// ActionDiscard accepts that the effect may be lost.
	OnUnknown Action
}

// Special values of Provider.Window.
const (
	WindowAlways = calls.Always
	WindowNever  = calls.Never
)

const defaultWindow = 24 * time.Hour

// LookupResult is the result of Provider.Lookup.
type LookupResult uint8

const (
	// StillUnknown means that Lookup could not determine the outcome.
	StillUnknown LookupResult = iota
	// Happened means that a call had its effect.
	Happened
	// DidNotHappen means that none of the calls had an effect.
	DidNotHappen
)

// String returns the name of the result.
func (f LookupResult) String() string {
	return enum.Name([]string{StillUnknown: "still unknown", Happened: "happened", DidNotHappen: "did not happen"}, f, "LookupResult")
}
