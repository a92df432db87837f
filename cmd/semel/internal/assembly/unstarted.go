package assembly

import (
	"context"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
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

// logRisk logs at the start which risk the policy accepts: the calls of a consumer
// carry no key.
func (a *Assembly) logRisk(c *policy.Consumer) {
	because := func(text string) []any {
		return []any{slog.String("consumer", c.Name), slog.String("because", legible.Printable(text))}
	}
	switch h := c.Handler.HTTP; {
	case h.MayDouble != "":
		a.options.Logger.Warn("calls carry no key and may happen twice: after a crash or a lost answer they are made again", because(h.MayDouble)...)
	case h.MayBeLost != "":
		a.options.Logger.Warn("calls carry no key and may be lost: after a crash or a lost answer they are not made again, and their messages are discarded", because(h.MayBeLost)...)
	}
}

// logWindow logs at the start what becomes of a call with an unknown outcome, and how its
// message ends when it may not be made again.
func (a *Assembly) logWindow(c *policy.Consumer, ends string) {
	says := ""
	switch window := c.Handler.HTTP.Window; window {
	case consumer.WindowAlways:
		says = "it is made again under the same key, which the endpoint never forgets"
	case consumer.WindowNever:
		says = "none is made again, since the endpoint knows no keys: " + ends
	default:
		says = "it is made again under the same key for " + legible.Span(window-c.Timeout) + " from the first call; after that " + ends
	}
	a.options.Logger.Info("of a call whose outcome nobody knows: "+says, "consumer", c.Name)
}

// boxOf is the command that shows what waits for a consumer.
func boxOf(c *policy.Consumer) string {
	if c.Sends() {
		return "intents"
	}
	return "inbox"
}
