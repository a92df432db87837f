package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// caller is a batch whose handler calls out. It makes the call, unless nobody may, and
// notes at the row what is known of it.
type caller interface {
	call(ctx context.Context, c *Config, h *heldRow, m *semel.Message, run func() error) error
}

// calling has the handler of one message run by its batch, if that is for calls.
func (p *pilot[Tx]) calling(f *flight[Tx], i int, m *semel.Message, run func() error) func() error {
	if k, keyed := any(f.batch).(*keyedCall); keyed {
		return func() error { return k.call(f.ctx, &p.engine.config, f.cancel, m, run) }
	}
	out, ok := f.batch.(caller)
	h := rowOf(&f.Entries[i])
	if !ok || h == nil {
		return run
	}
	return func() error { return out.call(f.ctx, &p.engine.config, h, m, run) }
}

// aboutToCall notes of the rows of a flight that no call was made yet: its start is
// written down before it runs, and is taken back if it does not.
func (p *pilot[Tx]) aboutToCall(f *flight[Tx]) {
	if _, out := p.engine.store.(callsOut); !out {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == contract.Applied && !h.took {
			h.note(contract.CallNotMade)
		}
	}
}

// called is what is known of the call that was made under the row's claim.
func (h *heldRow) called() contract.CallOutcome { return contract.CallOutcome(h.call.Load()) }

// note says what is known of the call that is made under the row's claim.
func (h *heldRow) note(o contract.CallOutcome) { h.call.Store(uint32(o)) }

// call implements caller.
func (b *outside) call(ctx context.Context, c *Config, h *heldRow, m *semel.Message, run func() error) error {
	if h.took { // and the store has not answered that this is recorded
		return nil
	}
	if b.started.Unknown() && c.forgotten(b.started.Since) {
		switch finding, err := c.doubt(ctx, b.started.Since, m); {
		case err != nil:
			return err
		case finding == Happened:
			h.note(contract.CallDecided)
			h.took = true
			return nil
		}
	}
	h.note(contract.CallUnknown)
	err := run()
	o := callOutcome(ctx, err)
	h.note(o)
	h.took = err == nil && o == contract.CallDecided
	if o == contract.CallUnknown && ctx.Err() == nil && c.Provider.isLost() {
		return &semel.HandlerError{Decision: semel.DecideDiscard, Reason: semel.ReasonOutcomeUnknown, Err: err}
	}
	return err
}

// doubt finds out what became of calls whose key the other side may have forgotten, or
// says how the message ends about which nobody knows. Nobody calls then.
func (c *Config) doubt(ctx context.Context, since time.Duration, m *semel.Message) (Finding, error) {
	ended := &semel.HandlerError{Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown}
	first := since.Round(time.Second)
	switch {
	case c.Provider.Window == WindowNever:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %v ago, and the other side knows no keys", first)
	default:
		ended.Err = fmt.Errorf("what became of an earlier call is not known, the first was made %v ago, and keys are known for %v", first, c.Provider.Window)
	}
	if c.Provider.Ask == nil && c.Provider.OnUnknown == ThenDiscard {
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

// callOutcome is what is known of a call whose handler returned err. What came too late
// was not heard, whatever it says.
func callOutcome(ctx context.Context, err error) (o contract.CallOutcome) {
	defer func() {
		if recover() != nil { // an error that cannot be read
			o = contract.CallUnknown
		}
	}()
	var decided *semel.HandlerError
	switch {
	case ctx.Err() != nil:
		return contract.CallUnknown
	case err == nil:
		return contract.CallDecided
	}
	for within := err; errors.As(within, &decided); within = decided.Err {
		if decided.Decision == semel.DecideUnknown {
			return contract.CallUnknown
		}
	}
	if !errors.As(err, &decided) {
		return contract.CallUnknown
	}
	switch decided.Decision {
	case semel.DecideRetry, semel.DecideUnmet:
		return contract.CallFailed
	case semel.DecideDuplicate, semel.DecidePermanent, semel.DecidePark, semel.DecideDiscard:
		return contract.CallDecided
	}
	return contract.CallUnknown
}
