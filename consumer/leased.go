package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// Call is what a handler gets in place of a transaction; see Leased and NewCalling.
type Call struct {
	// later is the flight's transaction, which is to begin; nil with Leased.
	later any
}

// Leased is a store for handlers that call out: what they do is in no transaction,
// and none is open while they run. A message waits in the store's inbox, is claimed
// for a lease that is extended while its handler runs, and is completed under its
// token when the handler has returned. So of the processes of a consumer one at a time
// calls for a message, as long as handlers heed their contexts and processes are not
// frozen for longer than a lease. The call happens at least once: again after a crash
// between it and its record, and where the lease was lost meanwhile. Give the other
// side Message.IdempotencyKey.
//
// A flight has one message, since no call can be rolled back for a neighbour's sake;
// Config.Workers bounds how many run at once. It needs a store with an inbox
// (contract.Leases, contract.Inbox), StrategyInbox, and, where there is a Source,
// SettleAfterReceipt: receipts are transactions of the store, and the only ones.
// Process is not for it.
func Leased[Tx any](store contract.TxStore[Tx]) contract.TxStore[Call] {
	leases, _ := store.(contract.Leases)
	rows, _ := store.(contract.Inbox)
	calls, _ := store.(contract.Calls)
	s := &leased[Tx]{store: store, Leases: leases, Inbox: rows, calls: calls}
	s.starts = &together[start, contract.CallStarted]{carry: s.startAll, alone: s.isOnes, pace: &pace{}}
	s.ends = &together[contract.ClaimEnding, bool]{carry: s.endAll, alone: s.isOnes, pace: &pace{}}
	return s
}

// leased carries out a flight of a claim without a transaction, and any other as a
// batch of its store.
type leased[Tx any] struct {
	store contract.TxStore[Tx]
	contract.Leases
	contract.Inbox
	calls contract.Calls
	// starts and ends are those of the calls of many workers; ends says which stood.
	starts *together[start, contract.CallStarted]
	ends   *together[contract.ClaimEnding, bool]
}

// start is a call that is about to be made, under a claim with this lease.
type start struct {
	claim contract.Claim
	lease time.Duration
}

func (s *leased[Tx]) startAll(ctx context.Context, all []start) ([]contract.CallStarted, error) {
	claims, lease := make([]contract.Claim, len(all)), time.Duration(0)
	for i, one := range all {
		claims[i], lease = one.claim, max(lease, one.lease)
	}
	return s.calls.StartCalls(ctx, claims, lease)
}

func (s *leased[Tx]) endAll(ctx context.Context, all []contract.ClaimEnding) ([]bool, error) {
	lost, err := s.End(ctx, all)
	stood := make([]bool, len(all))
	for i := range stood {
		stood[i] = !slices.Contains(lost, i)
	}
	return stood, err
}

// isOnes reports whether an error is the store's answer to one of several.
func (s *leased[Tx]) isOnes(err error) bool {
	class := s.store.Classify(err)
	return class == contract.ClassPermanent || class == contract.ClassRetry
}

// callsOut is what New knows a leased store by.
type callsOut interface {
	fitsLeased(c *settings) error
	inner() any
}

// fitsCalls reports what is in the way of a consumer that calls out with this policy, or
// what of it is only for one.
func (c *settings) fitsCalls(store any) error {
	if out, ok := store.(callsOut); ok {
		return out.fitsLeased(c)
	}
	if c.Provider.Ask != nil || c.Provider.Window != DefaultWindow || c.Provider.OnUnknown != ActionPark {
		return errors.New("Provider is set, and nobody is called: it is for the store of Leased; remove it")
	}
	return nil
}

// abilityOf is an optional ability of a store, also of the one that Leased was given.
func abilityOf[A any](store any) (ability A, able bool) {
	if l, calls := store.(callsOut); calls {
		store = l.inner()
	}
	ability, able = store.(A)
	return ability, able
}

// fitsLeased reports what is in the way of a consumer with this policy, and
// lets each claim fly alone: receipts, which hold nobody's call, are in batches.
func (s *leased[Tx]) fitsLeased(c *settings) error {
	switch {
	case s.store == nil:
		return errors.New("the store of Leased is nil; pass one that is open")
	case s.Leases == nil || s.Inbox == nil:
		return fmt.Errorf("the store of Leased has no inbox, which its claims are of: %w", semel.ErrUnsupported)
	case s.calls == nil:
		return fmt.Errorf("the store of Leased does not remember calls (contract.Calls), so that nobody would know of one whose outcome is unknown: %w", semel.ErrUnsupported)
	case c.Strategy != StrategyInbox:
		return fmt.Errorf("with Leased the Strategy is %v, and must be %v: its calls are no part of a transaction that a marker could be in", c.Strategy, StrategyInbox)
	case c.Source != nil && c.Settle != SettleAfterReceipt:
		return fmt.Errorf("with Leased and a Source, Settle is %v, and must be %v: a message is called for only when it is claimed", c.Settle, SettleAfterReceipt)
	}
	c.callsOut = true
	return nil
}

func (s *leased[Tx]) inner() any { return s.store }

// Scope implements contract.TxStore.
func (s *leased[Tx]) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	return s.store.Scope(ctx, consumer, source, generation)
}

// Classify implements contract.TxStore. What a handler meets is its own.
func (s *leased[Tx]) Classify(err error) contract.Class { return s.store.Classify(err) }

// Check implements contract.SchemaChecker.
func (s *leased[Tx]) Check(ctx context.Context) error {
	if checker, ok := s.store.(contract.SchemaChecker); ok {
		return checker.Check(ctx)
	}
	return nil
}

// FitIdentity implements contract.IdentityFitter.
func (s *leased[Tx]) FitIdentity(source, id string) (string, error) {
	if fitter, ok := s.store.(contract.IdentityFitter); ok {
		return fitter.FitIdentity(source, id)
	}
	return id, nil
}

// IsStoreFault implements contract.FaultClassifier.
func (s *leased[Tx]) IsStoreFault(err error) bool { return exonerates(s.store, err) }

// Listen implements contract.Notifier.
func (s *leased[Tx]) Listen(ctx context.Context, consumer string, due func()) error {
	if n, ok := s.store.(contract.Notifier); ok {
		return n.Listen(ctx, consumer, due)
	}
	return semel.ErrUnsupported
}

// Notify implements contract.Notifier.
func (s *leased[Tx]) Notify(ctx context.Context, consumer string) error {
	if n, ok := s.store.(contract.Notifier); ok {
		return n.Notify(ctx, consumer)
	}
	return nil
}

var errCallUnclaimed = errors.New("semel: a call needs a claim; with Leased, Process cannot run handlers")

// Begin implements contract.TxStore. Of a claim under which a call is to be made, the
// start is committed, which only the one that stands can; another is looked at by
// extending its lease.
func (s *leased[Tx]) Begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (contract.Batch[Call], []contract.Verdict, error) {
	if len(marks) == 0 { // what became of the claim is known already
		return &outside{ends: s.ends}, nil, nil
	}
	if len(marks) == 1 && marks[0].Claim.Token != 0 && marks[0].As == contract.Applied {
		asked := time.Now()
		started, err := s.starts.do(ctx, start{marks[0].Claim, o.Lease})
		if err != nil {
			return nil, nil, err
		}
		v := contract.Verdict{Kind: contract.Fresh}
		if !started.Stands {
			v.Kind = contract.ClaimLost
		}
		return &outside{started: started, asked: asked, ends: s.ends}, []contract.Verdict{v}, nil
	}
	if len(marks) == 1 && marks[0].Claim.Token != 0 {
		lost, err := s.Extend(ctx, []contract.Claim{marks[0].Claim}, o.Lease)
		if err != nil {
			return nil, nil, err
		}
		v := contract.Verdict{Kind: contract.Fresh}
		if len(lost) > 0 {
			v.Kind = contract.ClaimLost
		}
		return &outside{ends: s.ends}, []contract.Verdict{v}, nil
	}
	for i := range marks {
		if marks[i].As == contract.Applied || marks[i].Claim.Token != 0 {
			return nil, nil, errCallUnclaimed
		}
	}
	b, verdicts, err := s.store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return receipt[Tx]{b}, verdicts, nil
}

// outside is the flight of a claim: nothing is open.
type outside struct {
	// started is what the row knew when the call was begun; the zero value if none is.
	started contract.CallStarted
	// asked is before the store was asked for it.
	asked time.Time
	// lost: the claim is another's, or may be. Of the pilot.
	lost bool
	// kept: what was done before is not done again.
	kept bool
	ends *together[contract.ClaimEnding, bool]
}

func (*outside) Tx(int) Call              { return Call{} }
func (*outside) Rollback(context.Context) {}
func (*outside) Kill()                    {}

// ClassifyHandler implements contract.HandlerClassifier: whatever a handler meets, it
// is none of the store's.
func (*outside) ClassifyHandler(context.Context, error) contract.Class { return contract.ClassRetry }

// Commit implements contract.Batch. What the store did not answer is not known: the
// claim is taken anew then, or what became of its row is asked.
func (b *outside) Commit(ctx context.Context, e contract.Ending) contract.Result {
	if len(e.Claims) == 0 { // the claim was lost before
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
	}
	switch stood, err := b.ends.do(ctx, e.Claims[0]); {
	case err != nil:
		return contract.Result{Outcome: contract.CommitUnknown, Culprit: contract.NoCulprit, Err: err}
	case !stood:
		return contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassClaimLost, Culprit: contract.NoCulprit, Err: contract.ErrClaimLost}
	}
	return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
}

// receipt is a batch of the store in which no handler runs.
type receipt[Tx any] struct{ contract.Batch[Tx] }

// Tx implements contract.Batch.
func (receipt[Tx]) Tx(int) Call { return Call{} }
