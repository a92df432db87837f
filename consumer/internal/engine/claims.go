package engine

import (
	"context"
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// validClaims returns the claimed rows of a batch whose claims were still valid when the batch began.
func (f *flight[Tx]) validClaims(verdicts []store.Verdict) (all []*inbox.ClaimedRow) {
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && verdicts[i].Kind == store.Fresh {
			all = append(all, h)
		}
	}
	return all
}

// claims returns the claims that the transaction of a batch checks.
func (f *flight[Tx]) claims() (all []store.Claim) {
	for _, h := range f.rowsToCheck() {
		all = append(all, h.Claim())
	}
	return all
}

// forgetLost removes claims that were lost or have ended from the list of claims of this process.
func (p *pilot[Tx]) forgetLost(f *flight[Tx], verdicts []store.Verdict) {
	if f.known == nil {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && (verdicts[i].Kind == store.ClaimLost || f.known[i].Kind != 0) {
			p.engine.Inbox.Forget(h)
		}
	}
}

// keepWaiting extends the leases of a batch that is about to begin, because the batch may have to wait for a
// connection or for a batch of another process. Begin reports the claims that are lost during that wait.
func (p *pilot[Tx]) keepWaiting(f *flight[Tx]) {
	if rows := f.rowsToCheck(); len(rows) > 0 {
		p.engine.Inbox.Keeper.Begin(rows, time.Now().Add(p.engine.config.CommitTimeout), func(error) {})
	}
}

// keep extends the leases of the valid claims of a batch that has begun.
func (p *pilot[Tx]) keep(f *flight[Tx], verdicts []store.Verdict) {
	if f.known != nil {
		p.keepNothing(f)
		p.engine.Inbox.Keeper.Begin(f.validClaims(verdicts), time.Now().Add(p.engine.config.flightTime()), f.cancel)
	}
}

func (p *pilot[Tx]) keepNothing(f *flight[Tx]) {
	if f.known != nil {
		p.engine.Inbox.Keeper.End(f.claims())
	}
}

// keepAfter extends the leases of a batch that did not commit and may run again. The leases are extended until the
// batch runs again, but for keptAfter at most. After a long batch, keepAfter extends the leases at once, because a
// store with a single writer cannot extend leases while a batch is open. keepAfter returns the time until which the
// claims may wait, or 0 if the batch has no claims. If claims are lost in spite of keepAfter, the next Begin reports
// the loss.
func (p *pilot[Tx]) keepAfter(ctx context.Context, f *flight[Tx]) machine.Time {
	e := p.engine
	rows := f.rowsToCheck()
	if len(rows) == 0 {
		return 0
	}
	lease := e.config.Lease
	e.Inbox.Keeper.Begin(rows, time.Now().Add(keptAfter), func(error) {})
	if time.Since(f.began) > lease/3 {
		e.Inbox.Keeper.ExtendNow(ctx, f.claims())
	}
	return max(e.Inbox.Keeper.Earliest(rows).Add(-lease/3).Sub(e.began), 1)
}

// keptAfter is the maximum time for which keepAfter extends leases. It is longer than the time that a message waits
// after contention.
const keptAfter = 10 * time.Second

// rowsToCheck returns the rows whose claims the transaction of a batch checks.
func (f *flight[Tx]) rowsToCheck() (rows []*inbox.ClaimedRow) {
	if f.known == nil {
		return nil
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.known[i].Kind == 0 {
			rows = append(rows, h)
		}
	}
	return rows
}

func rowOf(en *machine.Entry) *inbox.ClaimedRow {
	return inbox.RowOf(en.Item.Handle.(*delivery.Delivery))
}

// lookAhead handles claims that need a statement before the batch begins. If the outcome of a claim's commit is
// unknown, lookAhead reclaims the row, because the old transaction may still commit. If a row may have crashed
// processes, lookAhead records in the store that the current process starts the row, so that a crash of the current
// process is counted.
func (p *pilot[Tx]) lookAhead(ctx context.Context, f *flight[Tx]) error {
	for i := range f.Entries {
		h := rowOf(&f.Entries[i])
		if h == nil {
			continue
		}
		if f.known == nil {
			f.known = make([]store.Verdict, len(f.Entries))
		}
		var err error
		if f.Entries[i].Unknown {
			f.known[i], err = p.engine.Inbox.Reclaim(ctx, h, &f.Entries[i])
		}
		if err == nil && f.known[i].Kind == 0 && h.Suspect && !h.Started && f.Entries[i].As == machine.AsApplied {
			f.known[i], err = p.engine.Inbox.Start(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// claimEnding returns how a claim ends with the commit of its batch.
func (f *flight[Tx]) claimEnding(r *machine.Row, h *inbox.ClaimedRow) store.ClaimEnding {
	return store.ClaimEnding{Claim: h.Claim(), Mark: f.mark[r.Entry], State: inbox.EndState(r.As), Stepped: r.As == machine.AsStepped,
		Version: f.Entries[r.Entry].Item.Handle.(*delivery.Delivery).VersionIn(0), After: r.After, Reason: r.Reason, Lined: h.Line() != nil, Call: h.Calls.Outcome(),
		Steps: h.StepsDone(r.As), Ran: r.Attempts > f.Entries[r.Entry].Item.Claim.Attempts, Error: inbox.ErrorText(r.Last)}
}

// prepareCall records in memory, for the rows of a batch, that no call was made yet. The store records the start of a
// call before the handler runs. If the handler does not run, the record of the call is removed again.
func (p *pilot[Tx]) prepareCall(f *flight[Tx]) {
	if !p.engine.config.CallsOut {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == store.Applied {
			h.Calls.Starting()
		}
	}
}

// flightTime is the maximum time from the start of a batch to the start of its commit.
func (c *Config) flightTime() time.Duration { return c.Machine.BatchTime + c.Timeout }
