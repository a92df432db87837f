package assembly

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/measure"
)

// unstarted is a consumer that cannot start, beside others that can: its run ends at once by
// the error.
type unstarted struct{ err error }

func (u unstarted) Run(context.Context) error              { return u.err }
func (unstarted) Counts() semel.Counts                     { return semel.Counts{} }
func (unstarted) Left() []semel.Left                       { return nil }
func (u unstarted) Ready() (bool, string)                  { return false, u.err.Error() }
func (unstarted) Alive() (bool, string)                    { return true, "" }
func (unstarted) StoreDown() (since time.Time, why string) { return time.Time{}, "" }
func (unstarted) Load() measure.Load                       { return measure.Load{} }
func (u unstarted) Work(context.Context, ...int64) error   { return u.err }

func (u unstarted) Foretell(context.Context, []contract.Delivery) ([]contract.Foretold, error) {
	return nil, u.err
}

// without reports whether a run goes on without a store that failed, because each consumer of
// the store says on_failure: continue. It keeps err for them.
func (a *Assembly) without(store string, err error) bool {
	if !a.options.ContinueOnFailure {
		return false
	}
	for _, c := range a.policy.Consumers {
		if c.Store == store && !c.ContinueOnFailure && (a.options.Consumer == "" || c.Name == a.options.Consumer) {
			return false
		}
	}
	a.unfit[store] = err
	return true
}
