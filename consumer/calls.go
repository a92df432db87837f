package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// aboutToCall notes of the rows of a flight that no call was made yet: its start is
// written down before it runs, and is taken back if it does not.
func (p *pilot[Tx]) aboutToCall(f *flight[Tx]) {
	if p.engine.config.way == byTransaction {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == store.Applied {
			h.calls.Starting()
		}
	}
}

// callRule is what the policy says of the other side.
func (c *settings) callRule() calls.Rule {
	return calls.Rule{Window: c.Provider.Window, Timeout: c.Timeout, Asks: c.Provider.Lookup != nil}
}

// doubt finds out what became of calls whose key the other side may have forgotten, or
// says how the message ends about which nobody knows. Nobody calls then.
func (c *settings) doubt(ctx context.Context, since time.Duration, m *semel.Message) (LookupResult, error) {
	ended := &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown}
	first := calls.Text(since)
	switch {
	case c.Provider.Window == WindowNever:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and the other side knows no keys", first)
	default:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and keys are known for %v", first, c.Provider.Window)
	}
	if c.Provider.Lookup == nil && c.Provider.OnUnknown == ActionDiscard {
		ended.Decision = semel.DecideDiscard
	}
	if c.Provider.Lookup == nil {
		return StillUnknown, ended
	}
	ended.Decision = semel.DecideRetry
	switch finding, err := c.Provider.Lookup(ctx, m); {
	case err != nil:
		ended.Err = fmt.Errorf("%w; asked, the other side answers: %w", ended.Err, err)
	case finding == Happened || finding == DidNotHappen:
		return finding, nil
	default:
		ended.Err = fmt.Errorf("%w; asked, the other side cannot tell", ended.Err)
	}
	return StillUnknown, ended
}

// serialFor is for how long contention makes batches run one at a time. Where each message
// is called out for, calls would be made one at a time, and all for a lock that somebody
// keeps of one of them; what follows from one answer is short, and is tried again alone.
func (c *settings) serialFor() time.Duration {
	if c.way.overRows() {
		return 0
	}
	return time.Minute
}
