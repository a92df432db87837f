package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/calls"
)

// Options are the settings of a consumer that a runner uses.
type Options struct {
	guard.Guard
	Timeouts
	// Provider describes the system that handlers call.
	Provider Provider
	// Keep is how long a leased key is kept after its last change.
	Keep time.Duration
	// FailOpen is the reason why handlers may run without a key while the key store is down. If FailOpen is
	// empty, handlers must not run without a key.
	FailOpen string
}

// Timeouts limit handlers and commits.
type Timeouts struct {
	// Timeout is the maximum duration of one handler. CommitTimeout is the maximum duration of a commit.
	Timeout, CommitTimeout time.Duration
}

// Provider describes the system that handlers call.
type Provider struct {
	calls.Rule
	// Lookup asks the other system for the result of the calls for a message. Lookup is nil if the system
	// cannot be asked.
	Lookup func(ctx context.Context, m *semel.Message) (Finding, error)
	// Discard means that a message is discarded, and not parked, if the outcome of its call is unknown.
	Discard bool
}

// isLost reports whether a message is discarded as soon as the outcome of its call is unknown.
func (p *Provider) isLost() bool {
	return p.Window == calls.Never && p.Lookup == nil && p.Discard
}

// Finding is the answer of Provider.Lookup. The zero value is StillUnknown.
type Finding uint8

const (
	StillUnknown Finding = iota
	Happened
	DidNotHappen
)

// CommitWithin returns how long a commit may take if handlers have queued the given number of statements.
func (o *Timeouts) CommitWithin(queued int) time.Duration {
	return o.CommitTimeout + min(time.Duration(queued), longestCommit/o.Timeout)*o.Timeout
}

// longestCommit is the maximum time that all queued statements together may take.
const longestCommit = 7 * 24 * time.Hour

// doubt asks Provider.Lookup for the result of calls whose key the other system may have forgotten. If the result stays
// unknown, or if there is no Lookup, doubt returns an error that decides how the message ends. If doubt returns an
// error, the call must not be made.
func (o *Options) doubt(ctx context.Context, since time.Duration, m *semel.Message) (Finding, error) {
	ended := &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown}
	first := calls.Text(since)
	switch {
	case o.Provider.Window == calls.Never:
		ended.Err = fmt.Errorf("the outcome of an earlier call is unknown: the first call was made %s, and the other system knows no keys", first)
	default:
		ended.Err = fmt.Errorf("the outcome of an earlier call is unknown: the first call was made %s, and the other system remembers keys for %v", first, o.Provider.Window)
	}
	if o.Provider.Lookup == nil && o.Provider.Discard {
		ended.Decision = semel.DecideDiscard
	}
	if o.Provider.Lookup == nil {
		return StillUnknown, ended
	}
	ended.Decision = semel.DecideRetry
	switch found, err := o.Provider.Lookup(ctx, m); {
	case err != nil:
		ended.Err = fmt.Errorf("%w; Lookup returned: %w", ended.Err, err)
	case found == Happened || found == DidNotHappen:
		return found, nil
	default:
		ended.Err = fmt.Errorf("%w; Lookup could not find it out", ended.Err)
	}
	return StillUnknown, ended
}
