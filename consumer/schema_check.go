package consumer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// recheckEvery is how long a schema that was looked at is taken for unchanged
// while the store works.
const recheckEvery = time.Hour

// forgetEvery is how often at most what was remembered is forgotten while an outage lasts, so
// that a store that answers some questions is not asked twice as often.
const forgetEvery = 10 * time.Second

// recheck looks at the store's tables again while a run goes on. What was
// changed beside it, such as markers that a crash empties, does its harm with
// the next outage: so no transaction is opened after one before the tables were
// looked at. While the store works, that costs nothing but a look an hour.
type recheck struct {
	checker store.SchemaChecker // nil if the store is none
	forget  func()              // what was remembered of a store that was away
	// failures counts the events that say that the store did not work; checked
	// is the count that the last look has seen; looked is when it was, and forgot
	// from when on things may be forgotten again, by the time of the run.
	failures, checked atomic.Int64
	looked, forgot    atomic.Int64
	began             time.Time
}

func newRecheck(st any, forget func(), began time.Time) *recheck {
	checker, _ := st.(store.SchemaChecker)
	return &recheck{checker: checker, forget: forget, began: began}
}

// note hears what became of an order.
func (r *recheck) note(e machine.Event) {
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

// look forgets what was remembered of a store that has failed since the last look, and
// returns what is wrong with the tables, where it is time to ask.
func (r *recheck) look(ctx context.Context) error {
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
