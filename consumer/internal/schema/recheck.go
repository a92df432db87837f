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

// forgetEvery is the minimum time between two calls of forget while an outage lasts. Without forgetEvery, a store that
// responds only sometimes would get twice as many calls.
const forgetEvery = 10 * time.Second

// Recheck checks the store's tables again during a run. Some changes of tables do harm at the next outage: for example,
// a crash empties unlogged tables. So after an outage, no transaction begins before the tables were checked. While the
// store works, the tables are checked once an hour. The methods of Recheck may be called by several goroutines.
type Recheck struct {
	checker admin.SchemaChecker // nil if the store cannot check
	forget  func()              // clears the cached numbers of sources
	// The field failures counts events that show a failing store, and checkedFailures is the value of failures at the
	// last check. lastCheck is the time of the last check, and nextForget is the time from which forget may be called
	// again. Both times are stored as durations since began.
	failures, checkedFailures atomic.Int64
	lastCheck, nextForget     atomic.Int64
	began                     time.Time
}

// New returns the Recheck of a run that began at the given time. The function forget clears the cached numbers of
// sources.
func New(st any, forget func(), began time.Time) *Recheck {
	checker, _ := st.(admin.SchemaChecker)
	return &Recheck{checker: checker, forget: forget, began: began}
}

// Note counts an event if the event shows that the store did not work.
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

// Check checks the tables if a check is due, and returns an error if the tables have a fault. If the store has failed
// since the last check, Check calls the function forget.
func (r *Recheck) Check(ctx context.Context) error {
	failures, since := r.failures.Load(), time.Since(r.began)
	if failures == r.checkedFailures.Load() && (r.checker == nil || since-time.Duration(r.lastCheck.Load()) < recheckEvery) {
		return nil
	}
	if r.checker != nil {
		if err := r.checker.Check(ctx); err != nil {
			return err
		}
	}
	if failures != r.checkedFailures.Load() && int64(since) >= r.nextForget.Load() {
		r.forget()
		r.nextForget.Store(int64(since + forgetEvery))
	}
	r.checkedFailures.Store(failures)
	r.lastCheck.Store(int64(since))
	return nil
}
