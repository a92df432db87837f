// Package schema checks the tables of a store again while a consumer runs.
package schema

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// recheckEvery is the time after which the tables are checked again while the store works.
const recheckEvery = time.Hour

// forgetEvery is the shortest time between two calls of forget while an outage lasts, so that a
// store that answers some calls does not get twice as many.
const forgetEvery = 10 * time.Second

// Recheck checks the store's tables again while a run goes on. Changes made to them, such as a
// change to unlogged tables, which a crash empties, do harm with the next outage. So no
// transaction begins after an outage before the tables were checked. While the store works, they
// are checked once an hour. Its methods may be called by several goroutines.
type Recheck struct {
	checker admin.SchemaChecker // nil if the store cannot check
	forget  func()              // forgets what is remembered of the store
	// failures counts events of a store that did not work; checked is that count at the last check;
	// looked is when that was, and forgot when forget may be called again, both since began.
	failures, checked atomic.Int64
	looked, forgot    atomic.Int64
	began             time.Time
}

// New returns the Recheck of a run that began at that time. forget forgets what is remembered of
// the store.
func New(st any, forget func(), began time.Time) *Recheck {
	checker, _ := st.(admin.SchemaChecker)
	return &Recheck{checker: checker, forget: forget, began: began}
}

// Note counts an event if it says that the store did not work.
func (r *Recheck) Note(e machine.Event) {
	down := false
	switch e := e.(type) {
	case machine.Marked:
		down = e.Class == store.ClassDown
	case machine.Ran:
		down = e.Failed && e.Failure.Class == store.ClassDown
	case machine.Ended:
		down = e.Class == store.ClassDown || e.Outcome == store.CommitUnknown
	}
	if down {
		r.failures.Add(1)
	}
}

// Check checks the tables if it is time to, and returns what is wrong with them. Check calls forget
// if the store has failed since the last check.
func (r *Recheck) Check(ctx context.Context) error {
	failures, since := r.failures.Load(), time.Since(r.began)
	if failures == r.checked.Load() && (r.checker == nil || since-time.Duration(r.looked.Load()) < recheckEvery) {
		return nil
	}
	if r.checker != nil {
		if err := r.checker.Check(ctx); err != nil {
			return err
		}
	}
	if failures != r.checked.Load() && int64(since) >= r.forgot.Load() {
		r.forget()
		r.forgot.Store(int64(since + forgetEvery))
	}
	r.checked.Store(failures)
	r.looked.Store(int64(since))
	return nil
}
