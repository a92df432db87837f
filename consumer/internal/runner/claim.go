package runner

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/groupcommit"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// claims processes a claimed row without a transaction. Messages without a claim are received into the inbox in
// transactions of the store.
type claims[Tx any] struct {
	config *Options
	store  store.TxStore[Tx]
	leases store.Leases
	// The fields starts and ends combine the requests of several workers in one transaction. The result of ends says
	// whether the claim was still valid.
	starts *groupcommit.Group[start, store.CallStarted]
	ends   *groupcommit.Group[store.ClaimEnding, bool]
}

// NewClaims returns the runner of NewLeased. The store must implement store.Leases.
func NewClaims[Tx any](c *Options, st store.TxStore[Tx]) *claims[Tx] {
	r := &claims[Tx]{config: c, store: st, leases: st.(store.Leases)}
	r.starts = groupcommit.New(r.startAll, r.isOnes, 0)
	r.ends = groupcommit.New(r.endAll, r.isOnes, 0)
	return r
}

// start is a call of another system that will be made, with the claim of its message and the lease of the claim.
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

// isOnes reports whether one of several inputs may have caused an error of the store.
func (r *claims[Tx]) isOnes(err error) bool {
	class := r.store.Classify(err)
	return class == store.ClassPermanent || class == store.ClassRetry
}

// areClaim reports whether marks belong to one claimed row. If the claim is known to have ended, there are no marks.
func areClaim(marks []store.Mark) bool {
	return len(marks) == 0 || len(marks) == 1 && marks[0].Claim.Token != 0
}

func (r *claims[Tx]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	if areClaim(marks) {
		a, b, err := r.beginClaim(ctx, o, marks)
		if err != nil {
			return Begun[Call]{}, err
		}
		b.Attempt = a
		return b, nil
	}
	for i := range marks {
		if marks[i].As == store.Applied || marks[i].Claim.Token != 0 {
			return Begun[Call]{}, errCallUnclaimed
		}
	}
	return beginReceipt(ctx, r.store, o, marks)
}

// beginClaim checks the claim of a row. If a call will be made, the store records the start of the call, which fails if
// the claim is lost. If no call will be made, the store extends the lease and reports a lost claim.
func (r *claims[Tx]) beginClaim(ctx context.Context, o store.TxOptions, marks []store.Mark) (*claimAttempt, Begun[Call], error) {
	a, b := &claimAttempt{config: r.config, ends: r.ends}, Begun[Call]{}
	if len(marks) == 0 {
		return a, b, nil
	}
	stands := false
	if marks[0].As == store.Applied {
		a.requestedAt = time.Now()
		started, err := r.starts.Do(ctx, start{marks[0].Claim, o.Lease})
		if err != nil {
			return nil, b, err
		}
		a.callStart, b.Extended, stands = started, started.Stands, started.Stands
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
	b.Verdicts = []store.Verdict{v}
	return a, b, nil
}

// claimAttempt is a claimed row that is being processed.
type claimAttempt struct {
	untransacted
	config *Options
	// callStart is the record of earlier calls that the store returned when it recorded the start of the current call.
	// If no call will be made, callStart is the zero value.
	callStart store.CallStarted
	// requestedAt is the time just before the request that returned callStart.
	requestedAt time.Time
	// alreadySent means that the intent was already sent and is not sent again.
	alreadySent bool
	ends        *groupcommit.Group[store.ClaimEnding, bool]
}

// Run makes the call if the call is allowed, and records the known outcome in the row.
func (a *claimAttempt) Run(j *Job[Call]) error {
	h := j.Row
	switch h.Calls.Next(a.callStart, a.config.Provider.Rule, time.Since(a.requestedAt), j.remainingLease()) {
	case calls.Leave:
		return j.loseClaim()
	case calls.Nothing:
		return nil
	case calls.Keep:
		a.alreadySent = true
		return nil
	case calls.Ask, calls.GiveUp:
		switch found, err := a.config.doubt(j.Ctx, a.callStart.Since, j.Message); {
		case err != nil:
			return err
		case found == Happened:
			h.Calls.Happened()
			return nil
		case h.Calls.DidNotHappen(j.remainingLease()) == calls.Leave:
			return j.loseClaim()
		}
	}
	h.Calls.Making()
	err := j.Handle(Call{})
	h.Calls.Made(j.Ctx.Err() != nil, err)
	if h.Calls.Outcome() == store.CallUnknown && j.Ctx.Err() == nil && a.config.Provider.isLost() {
		return &semel.HandlerError{Decision: semel.DecideDiscard, Reason: semel.ReasonOutcomeUnknown, Err: err}
	}
	return err
}

// Commit ends the claim. If the store does not respond, the outcome is unknown. After an unknown outcome, the next
// attempt claims the row again, or finds that the claim has ended.
func (a *claimAttempt) Commit(ctx context.Context, e store.Ending) Outcome {
	out := Outcome{Result: store.Result{Outcome: store.Committed, Culprit: store.NoCulprit}, NotReEmitted: a.alreadySent}
	if len(e.Claims) == 0 { // the claim was lost earlier
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
