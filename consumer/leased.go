package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/groupcommit"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// Call is what handlers that call out get in place of a transaction; see NewLeased and NewKeyed.
type Call struct{}

// NewLeased is New for handlers that call out: what they do is in no transaction, and none is
// open while they run. A message waits in the store's inbox, is claimed for a lease that is
// extended while its handler runs, and is completed under its token when the handler has
// returned. So of the processes of a consumer one at a time calls for a message, as long as
// handlers heed their contexts and processes are not frozen for longer than a lease. The call
// happens at least once: again after a crash between it and its record, and where the lease was
// lost meanwhile. Give the other side Message.IdempotencyKey.
//
// A flight has one message, since no call can be rolled back for a neighbour's sake;
// Config.Workers bounds how many run at once. It needs a store with store.Inbox and
// store.Leases, StrategyInbox, and, where there is a Source, AckOnReceipt: receipts are
// transactions of the store, and the only ones. Process is not for it.
func NewLeased[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, handler[Call]{one: handle}, c, plans)
}

// NewLeasedSteps is NewSteps for steps that call out: no transaction is open while a step runs.
// A step is done at least once, and never again after its end was written.
func NewLeasedSteps[Tx any](st store.TxStore[Tx], steps []Step[Call], c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, handler[Call]{steps: slices.Clone(steps)}, c, plans)
}

func newLeased[Tx any](st store.TxStore[Tx], h handler[Call], policy Config, plans []faults.Plan) (*Consumer[Call], error) {
	c, err := policy.settings(h.needs(byClaim, st), plans)
	if err != nil {
		return nil, err
	}
	return assemble(c, st, newClaims(c, st), h), nil
}

// fitsClaims reports what of the policy or of the store is in the way of a consumer whose
// handlers call out under claims.
func (c *settings) fitsClaims(st any) error {
	switch {
	case !claimsRows(st):
		return fmt.Errorf("the store has no inbox, which claims are of: %w", semel.ErrUnsupported)
	case c.Strategy != StrategyInbox:
		return fmt.Errorf("handlers call out and the Strategy is %v; it must be %v: calls are no part of a transaction that a marker could be in", c.Strategy, StrategyInbox)
	case c.Source != nil && !c.AckOnReceipt:
		return errors.New("handlers call out, there is a Source, and AckOnReceipt is not set; set it: a message is called for only when it is claimed")
	}
	return nil
}

// claims runs a flight of a claim without a transaction, and receives messages in transactions
// of the store.
type claims[Tx any] struct {
	config *settings
	store  store.TxStore[Tx]
	leases store.Leases
	// starts and ends are those of the calls of many workers; ends says which stood.
	starts *groupcommit.Group[start, store.CallStarted]
	ends   *groupcommit.Group[store.ClaimEnding, bool]
}

// newClaims is for a store that fitsClaims accepts.
func newClaims[Tx any](c *settings, st store.TxStore[Tx]) *claims[Tx] {
	r := &claims[Tx]{config: c, store: st, leases: st.(store.Leases)}
	r.starts = groupcommit.New(r.startAll, r.isOnes, 0)
	r.ends = groupcommit.New(r.endAll, r.isOnes, 0)
	return r
}

// start is a call that is about to be made, under a claim with this lease.
type start struct {
	claim store.Claim
	lease time.Duration
}

func (r *claims[Tx]) startAll(ctx context.Context, all []start) ([]store.CallStarted, error) {
	claims, lease := make([]store.Claim, len(all)), time.Duration(0)
	for i, one := range all {
		claims[i], lease = one.claim, max(lease, one.lease)
	}
	return r.leases.StartCalls(ctx, claims, lease)
}

func (r *claims[Tx]) endAll(ctx context.Context, all []store.ClaimEnding) ([]bool, error) {
	lost, err := r.leases.End(ctx, all)
	stood := make([]bool, len(all))
	for i := range stood {
		stood[i] = !slices.Contains(lost, i)
	}
	return stood, err
}

// isOnes reports whether an error is the store's answer to one of several.
func (r *claims[Tx]) isOnes(err error) bool {
	class := r.store.Classify(err)
	return class == store.ClassPermanent || class == store.ClassRetry
}

// areClaim reports whether marks belong to the flight of one claim. Such a flight has no marks if
// it is known already what became of the claim.
func areClaim(marks []store.Mark) bool {
	return len(marks) == 0 || len(marks) == 1 && marks[0].Claim.Token != 0
}

func (r *claims[Tx]) begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (begun[Call], error) {
	if areClaim(marks) {
		a, b, err := r.beginClaim(ctx, o, marks)
		if err != nil {
			return begun[Call]{}, err
		}
		b.attempt = a
		return b, nil
	}
	for i := range marks {
		if marks[i].As == store.Applied || marks[i].Claim.Token != 0 {
			return begun[Call]{}, errCallUnclaimed
		}
	}
	return beginReceipt(ctx, r.store, o, marks)
}

// beginClaim begins the flight of a claim. If a call is to be made, its start is committed,
// which only the claim that stands can; otherwise extending the lease tells whether it does.
func (r *claims[Tx]) beginClaim(ctx context.Context, o store.TxOptions, marks []store.Mark) (*claimed, begun[Call], error) {
	a, b := &claimed{config: r.config, ends: r.ends}, begun[Call]{}
	if len(marks) == 0 {
		return a, b, nil
	}
	stands := false
	if marks[0].As == store.Applied {
		a.asked = time.Now()
		started, err := r.starts.Do(ctx, start{marks[0].Claim, o.Lease})
		if err != nil {
			return nil, b, err
		}
		a.started, b.extended, stands = started, started.Stands, started.Stands
	} else {
		lost, err := r.leases.Extend(ctx, []store.Claim{marks[0].Claim}, o.Lease)
		if err != nil {
			return nil, b, err
		}
		stands = len(lost) == 0
	}
	v := store.Verdict{Kind: store.ClaimLost}
	if stands {
		v.Kind = store.Fresh
	}
	b.verdicts = []store.Verdict{v}
	return a, b, nil
}

// claimed is the flight of a claim.
type claimed struct {
	untransacted
	config *settings
	// started is what the row knew when the call was begun; the zero value if none is.
	started store.CallStarted
	// asked is before the store was asked for it.
	asked time.Time
	// kept: what was done before is not done again.
	kept bool
	ends *groupcommit.Group[store.ClaimEnding, bool]
}

// run makes the call, unless nobody may, and notes at the row what is known of it.
func (a *claimed) run(j *job[Call]) error {
	h := j.row
	switch h.calls.Next(a.started, a.config.callRule(), time.Since(a.asked), j.left()) {
	case calls.Leave:
		return j.leave()
	case calls.Nothing:
		return nil
	case calls.Keep:
		a.kept = true
		return nil
	case calls.Ask, calls.GiveUp:
		switch finding, err := a.config.doubt(j.ctx, a.started.Since, j.message); {
		case err != nil:
			return err
		case finding == Happened:
			h.calls.Happened()
			return nil
		case h.calls.DidNotHappen(j.left()) == calls.Leave:
			return j.leave()
		}
	}
	h.calls.Making()
	err := j.handle(Call{})
	h.calls.Made(j.ctx.Err() != nil, err)
	if h.calls.Outcome() == store.CallUnknown && j.ctx.Err() == nil && a.config.Provider.isLost() {
		return &semel.HandlerError{Decision: semel.DecideDiscard, Reason: semel.ReasonOutcomeUnknown, Err: err}
	}
	return err
}

// commit ends the claim. What the store did not answer is not known: the claim is taken anew
// then, or what became of its row is asked.
func (a *claimed) commit(ctx context.Context, e store.Ending) outcome {
	out := outcome{Result: store.Result{Outcome: store.Committed, Culprit: store.NoCulprit}, notReEmitted: a.kept}
	if len(e.Claims) == 0 { // the claim was lost before
		return out
	}
	switch stood, err := a.ends.Do(ctx, e.Claims[0]); {
	case err != nil:
		out.Result = store.Result{Outcome: store.CommitUnknown, Culprit: store.NoCulprit, Err: err}
	case !stood:
		out.Result = store.Result{Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: store.NoCulprit, Err: store.ErrClaimLost}
	}
	return out
}
