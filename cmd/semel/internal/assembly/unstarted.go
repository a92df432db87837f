package assembly

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// unstarted is a consumer that cannot start, beside others that can: its run ends at once by
// the error.
type unstarted struct{ err error }

func (u unstarted) Run(context.Context) error              { return u.err }
func (unstarted) Counts() semel.Counts                     { return semel.Counts{} }
func (unstarted) Unfinished() []semel.Unfinished           { return nil }
func (u unstarted) Ready() (bool, string)                  { return false, u.err.Error() }
func (unstarted) Alive() (bool, string)                    { return true, "" }
func (unstarted) StoreDown() (since time.Time, why string) { return time.Time{}, "" }
func (unstarted) Load() measure.Load                       { return measure.Load{} }
func (u unstarted) Work(context.Context, ...int64) error   { return u.err }

func (u unstarted) Preview(context.Context, []source.Delivery) ([]admin.Prediction, error) {
	return nil, u.err
}

// without reports whether a run goes on without a store that failed. It keeps err for the
// store's consumers.
func (a *Assembly) without(store string, err error) bool {
	if !a.spares(store) {
		return false
	}
	a.unfit[store] = err
	return true
}

// spares reports whether a run may go on without a store, because each consumer of the store
// says on_failure: continue.
func (a *Assembly) spares(store string) bool {
	if !a.options.ContinueOnFailure {
		return false
	}
	for _, c := range a.policy.Consumers {
		if c.Store == store && !c.ContinueOnFailure && (a.options.Consumer == "" || c.Name == a.options.Consumer) {
			return false
		}
	}
	return true
}

// spareUnanswering goes on without those stores that a run may spare and that do not answer
// within 15 seconds: a server that takes connections and says nothing would otherwise keep the
// consumers of all other stores from starting.
func (a *Assembly) spareUnanswering(ctx context.Context) error {
	for _, s := range a.Stores {
		if len(a.Stores) == 1 || !a.spares(s.Name()) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, answersWithin)
		_, err := s.Status(asking)
		late := asking.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if late && err != nil {
			a.without(s.Name(), s.Failed(err))
		}
	}
	return nil
}
