package consumer

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/enum"
)

// Provider describes the system that handlers call. It decides what happens to a message if the outcome of an
// earlier call is unknown. Within Window the call is repeated with the same key, which is harmless. Later the call
// is not repeated: Lookup finds out the outcome, or the message is parked with semel.ReasonOutcomeUnknown until a
// person records it.
type Provider struct {
	// Window is how long the other system remembers an idempotency key after the first call, by the store's clock.
	// Semel stops repeating one Timeout earlier, so that no call arrives too late. The default is 24 h.
	// WindowAlways: it never forgets. WindowNever: it knows no keys, and calls with an unknown outcome are never
	// repeated. Window must be longer than Timeout.
	Window time.Duration
	// Lookup, if not nil, asks the other system for the outcome of the calls for a message, if one is unknown and
	// Window has passed. Happened: the message is completed without another call. DidNotHappen: the call is made;
	// if its outcome is unknown too, Lookup is called again, because Window does not restart. StillUnknown or an
	// error: the message is retried as Retry says, and after its last attempt it ends as Retry.OnExhausted says,
	// with semel.ReasonOutcomeUnknown. Lookup and the call after it share one Timeout.
	Lookup func(ctx context.Context, m *semel.Message) (LookupResult, error)
	// OnUnknown is the action for a message with an unknown outcome whose call may not be repeated, if there is no
	// Lookup: ActionPark, the default, for a person, or ActionDiscard, for an effect that may be lost.
	OnUnknown Action
}

// Special values of Provider.Window.
const (
	WindowAlways = calls.Always
	WindowNever  = calls.Never
)

// defaultWindow is the default of Provider.Window.
const defaultWindow = 24 * time.Hour

// LookupResult is the result of Provider.Lookup.
type LookupResult uint8

// The results.
const (
	// StillUnknown: the outcome could not be found out.
	StillUnknown LookupResult = iota
	// Happened: the effect exists.
	Happened
	// DidNotHappen: none of the calls had an effect.
	DidNotHappen
)

// String returns the name of the result.
func (f LookupResult) String() string {
	return enum.Name([]string{StillUnknown: "still unknown", Happened: "happened", DidNotHappen: "did not happen"}, f, "LookupResult")
}
