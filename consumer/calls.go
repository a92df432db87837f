package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
)

// caller is a batch whose handler calls out. It makes the call, unless nobody may, and
// notes at the row what is known of it.
type caller interface {
	call(ctx context.Context, c *settings, h *heldRow, left func() time.Duration, m *semel.Message, run func() error) error
	// begun reports whether its start is written down.
	begun() bool
	// gone reports whether its claim is another's, or may be. A handler may return
	// contract.ErrClaimLost of something else.
	gone() bool
	// doneBefore reports whether it made no call because what was to be sent again must not
	// be.
	doneBefore() bool
}

// calling has the handler of one message run by its batch, if that is for calls.
func (p *pilot[Tx]) calling(f *flight[Tx], i int, m *semel.Message, run func() error) func() error {
	if k, keyed := any(f.batch).(*keyedCall); keyed {
		return func() error { return k.call(f.ctx, p.engine.config, f.cancel, m, run) }
	}
	out, ok := f.batch.(caller)
	h := rowOf(&f.Entries[i])
	if !ok || h == nil {
		return run
	}
	return func() error {
		err := out.call(f.ctx, p.engine.config, h, func() time.Duration { return p.engine.inbox.keeper.left(h) }, m, run)
		if out.gone() {
			f.cancel(contract.ErrClaimLost)
		}
		return err
	}
}

// aboutToCall notes of the rows of a flight that no call was made yet: its start is
// written down before it runs, and is taken back if it does not.
func (p *pilot[Tx]) aboutToCall(f *flight[Tx]) {
	if _, out := p.engine.store.(callsOut); !out {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == contract.Applied {
			h.calls.Starting()
		}
	}
}

// begunToCall notes until when the claims of a flight last whose start was written down
// for a lease that began after a moment.
func (p *pilot[Tx]) begunToCall(f *flight[Tx], asked time.Time, verdicts []contract.Verdict) {
	if out, ok := f.batch.(caller); !ok || !out.begun() {
		return
	}
	for _, h := range f.stand(verdicts) {
		p.engine.inbox.keeper.lasts(h, asked.Add(p.engine.config.Inbox.Lease))
	}
}

func (b *outside) begun() bool { return b.started.Stands }
func (b *outside) gone() bool  { return b.lost }

func (b *outside) doneBefore() bool { return b.kept }

// keep ends a message as it had ended before.
func (b *outside) keep() error {
	b.kept = true
	return nil
}

// leave is the error of a claim under which nobody may call.
func (b *outside) leave() error {
	b.lost = true
	return contract.ErrClaimLost
}

// call implements caller.
func (b *outside) call(ctx context.Context, c *settings, h *heldRow, left func() time.Duration, m *semel.Message, run func() error) error {
	switch h.calls.Next(b.started, c.callRule(), time.Since(b.asked), left()) {
	case calls.Leave:
		return b.leave()
	case calls.Nothing:
		return nil
	case calls.Keep:
		return b.keep()
	case calls.Ask, calls.GiveUp:
		switch finding, err := c.doubt(ctx, b.started.Since, m); {
		case err != nil:
			return err
		case finding == Happened:
			h.calls.Happened()
			return nil
		case h.calls.DidNotHappen(left()) == calls.Leave:
			return b.leave()
		}
	}
	h.calls.Making()
	err := run()
	h.calls.Made(ctx.Err() != nil, err)
	if h.calls.Outcome() == contract.CallUnknown && ctx.Err() == nil && c.Provider.isLost() {
		return &semel.HandlerError{Decision: semel.DecideDiscard, Reason: semel.ReasonOutcomeUnknown, Err: err}
	}
	return err
}

// callRule is what the policy says of the other side.
func (c *settings) callRule() calls.Rule {
	return calls.Rule{Window: c.Provider.Window, Timeout: c.Timeout, Asks: c.Provider.Ask != nil}
}

// doubt finds out what became of calls whose key the other side may have forgotten, or
// says how the message ends about which nobody knows. Nobody calls then.
func (c *settings) doubt(ctx context.Context, since time.Duration, m *semel.Message) (Finding, error) {
	ended := &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown}
	first := calls.Text(since)
	switch {
	case c.Provider.Window == WindowNever:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and the other side knows no keys", first)
	default:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %s, and keys are known for %v", first, c.Provider.Window)
	}
	if c.Provider.Ask == nil && c.Provider.OnUnknown == ActionDiscard {
		ended.Decision = semel.DecideDiscard
	}
	if c.Provider.Ask == nil {
		return StillUnknown, ended
	}
	ended.Decision = semel.DecideRetry
	switch finding, err := c.Provider.Ask(ctx, m); {
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
	if c.callsOut {
		return 0
	}
	return time.Minute
}
