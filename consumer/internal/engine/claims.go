package engine

import (
	"context"
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// stand returns the rows of a flight's claims that were still valid when the batch of the flight
// began.
func (f *flight[Tx]) stand(verdicts []store.Verdict) (all []*inbox.ClaimedRow) {
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && verdicts[i].Kind == store.Fresh {
			all = append(all, h)
		}
	}
	return all
}

// claims returns the claims that the batch of a flight checks.
func (f *flight[Tx]) claims() (all []store.Claim) {
	for _, h := range f.asked() {
		all = append(all, h.Claim())
	}
	return all
}

// forgetLost forgets claims that were lost or have ended.
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

// keepWaiting extends the leases of a flight that is about to begin: it may have to wait for a
// connection, or for another process's batch. Begin reports the claims that are lost meanwhile.
func (p *pilot[Tx]) keepWaiting(f *flight[Tx]) {
	if rows := f.asked(); len(rows) > 0 {
		p.engine.Inbox.Keeper.Begin(rows, time.Now().Add(p.engine.config.CommitTimeout), func(error) {})
	}
}

// keep extends the leases of the valid claims of a flight that has begun.
func (p *pilot[Tx]) keep(f *flight[Tx], verdicts []store.Verdict) {
	if f.known != nil {
		p.keepNothing(f)
		p.engine.Inbox.Keeper.Begin(f.stand(verdicts), time.Now().Add(p.engine.config.flightTime()), f.cancel)
	}
}

func (p *pilot[Tx]) keepNothing(f *flight[Tx]) {
	if f.known != nil {
		p.engine.Inbox.Keeper.End(f.claims())
	}
}

// keepAfter extends the leases of a flight that did not commit and may run again, until it does,
// but for keptAfter at most. After a long flight it extends them at once, because a store with a
// single writer could not extend leases while the batch was open. keepAfter returns until when the
// claims may wait, 0 if the flight has none. The next Begin reports claims that are lost
// nevertheless.
func (p *pilot[Tx]) keepAfter(ctx context.Context, f *flight[Tx]) machine.Time {
	e := p.engine
	rows := f.asked()
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

// keptAfter is longer than a message waits after contention.
const keptAfter = 10 * time.Second

// asked returns the rows of the claims that the batch of a flight checks.
func (f *flight[Tx]) asked() (rows []*inbox.ClaimedRow) {
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

// lookAhead handles claims that need a statement before the batch begins. A claim whose commit has
// an unknown outcome is reclaimed, since the old transaction may still commit. Of a row that is
// suspected of crashing processes, the start is recorded, so that a crash of this process counts.
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

// claimEnding returns how a claim ends with the commit of its flight.
func (f *flight[Tx]) claimEnding(r *machine.Row, h *inbox.ClaimedRow) store.ClaimEnding {
	return store.ClaimEnding{Claim: h.Claim(), Mark: f.mark[r.Entry], Event: inbox.ClaimEvent(r.As), Version: f.Entries[r.Entry].Item.Handle.(*delivery.Delivery).VersionIn(0), After: r.After, Reason: r.Reason, Lined: h.Line() != nil, Call: h.Calls.Outcome(),
		Steps: h.StepsDone(r.As), Ran: r.Attempts > f.Entries[r.Entry].Item.Claim.Attempts, Error: inbox.ErrorText(r.Last)}
}

// aboutToCall notes that no call was made yet for the rows of a flight: the store records the start
// of a call before the handler runs, and the record is taken back if the handler does not run.
func (p *pilot[Tx]) aboutToCall(f *flight[Tx]) {
	if !p.engine.config.CallsOut {
		return
	}
	for i := range f.Entries {
		if h := rowOf(&f.Entries[i]); h != nil && f.Entries[i].As.Outcome() == store.Applied {
			h.Calls.Starting()
		}
	}
}

// flightTime is how long a flight may take until its commit begins.
func (c *Config) flightTime() time.Duration { return c.Machine.BatchTime + c.Timeout }
