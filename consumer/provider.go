package consumer

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/enum"
)

// Provider is what is known of the other side that handlers call out to: what becomes
// of a message when nobody knows whether an earlier call for it took effect. Within
// Window it is called again under the same key, which is harmless. After that it is never
// called blindly: Lookup finds out, or the message is parked with
// semel.ReasonOutcomeUnknown, until a person says what became of it.
type Provider struct {
	// Window is for how long the other side knows an idempotency key: from the first
	// call, by the store's clock. Calls end one Timeout before it does, so that none
	// arrives too late. Default 24 h; WindowAlways: for ever; WindowNever: it knows no
	// keys, and no call of unknown outcome is repeated. It is longer than Timeout.
	Window time.Duration
	// Lookup, if not nil, asks the other side what became of the calls for a message, when
	// one has an unknown outcome and Window has passed. Happened: the message is
	// completed without another call. DidNotHappen: it is called for, and asked about
	// again should that call's outcome be unknown, too: Window does not begin anew.
	// StillUnknown, or an error: it is tried again as Retry says, and when its attempts
	// are used up it ends as Retry.OnExhausted says, with semel.ReasonOutcomeUnknown.
	// Lookup and the call after it have Timeout together.
	Lookup func(ctx context.Context, m *semel.Message) (LookupResult, error)
	// OnUnknown ends a message whose outcome nobody knows, when it may not be called
	// again and there is no Lookup: ActionPark, the default, for a person; ActionDiscard, for an
	// effect that may be lost.
	OnUnknown Action
}

// The ends of Provider.Window.
const (
	WindowAlways = calls.Always
	WindowNever  = calls.Never
)

// defaultWindow is the default of Provider.Window.
const defaultWindow = 24 * time.Hour

// LookupResult is what Provider.Lookup found out.
type LookupResult uint8

// The results.
const (
	// StillUnknown: it could not be found out.
	StillUnknown LookupResult = iota
	// Happened: the effect is there.
	Happened
	// DidNotHappen: there is none, of any of the calls.
	DidNotHappen
)

// String is the result's name.
func (f LookupResult) String() string {
	return enum.Name([]string{StillUnknown: "still unknown", Happened: "happened", DidNotHappen: "did not happen"}, f, "LookupResult")
}
