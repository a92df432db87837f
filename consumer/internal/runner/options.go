package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/calls"
)

// Options are what a runner needs of its consumer.
type Options struct {
	guard.Guard
	Timeouts
	// Provider is what is known of the other side that handlers call.
	Provider Provider
	// Keep is how long leased keys are kept.
	Keep time.Duration
	// FailOpen says why messages are called for without a key while the store of the keys is down;
	// empty: they are not.
	FailOpen string
}

// Timeouts bound handlers and commits.
type Timeouts struct {
	// Timeout is of one handler, CommitTimeout of a commit.
	Timeout, CommitTimeout time.Duration
}

// Provider is what is known of the other side that handlers call.
type Provider struct {
	calls.Rule
	// Lookup asks what became of the calls for a message; nil: nobody can be asked.
	Lookup func(ctx context.Context, m *semel.Message) (Finding, error)
	// Discard: a message is discarded whose outcome nobody knows.
	Discard bool
}

// isLost reports whether a message ends as soon as nobody knows what became of its call.
func (p *Provider) isLost() bool {
	return p.Window == calls.Never && p.Lookup == nil && p.Discard
}

// Finding is what the other side says of the calls for a message.
type Finding uint8

// The findings.
const (
	StillUnknown Finding = iota
	Happened
	DidNotHappen
)

// CommitWithin is how long a commit may take at most, with the statements that
// handlers queued.
func (o *Timeouts) CommitWithin(queued int) time.Duration {
	return o.CommitTimeout + min(time.Duration(queued), longestCommit/o.Timeout)*o.Timeout
}

// longestCommit bounds the sum of what queued statements may take.
const longestCommit = 7 * 24 * time.Hour

// doubt finds out what became of calls whose key the other side may have forgotten, or
// says how the message ends about which nobody knows. Nobody calls then.
func (o *Options) doubt(ctx context.Context, since time.Duration, m *semel.Message) (Finding, error) {
	ended := &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown}
	first := calls.Text(since)
	switch {
	case o.Provider.Window == calls.Never:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and the other side knows no keys", first)
	default:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and keys are known for %v", first, o.Provider.Window)
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
		ended.Err = fmt.Errorf("%w; asked, the other side answers: %w", ended.Err, err)
	case found == Happened || found == DidNotHappen:
		return found, nil
	default:
		ended.Err = fmt.Errorf("%w; asked, the other side cannot tell", ended.Err)
	}
	return StillUnknown, ended
}
