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

// failedConsumer is a consumer that cannot start. Run returns the error immediately, while the other
// consumers run.
type failedConsumer struct{ err error }

func (u failedConsumer) Run(context.Context) error              { return u.err }
func (failedConsumer) Counts() semel.Counts                     { return semel.Counts{} }
func (failedConsumer) Unfinished() []semel.Unfinished           { return nil }
func (u failedConsumer) Ready() (bool, string)                  { return false, u.err.Error() }
func (failedConsumer) Alive() (bool, string)                    { return true, "" }
func (failedConsumer) StoreDown() (since time.Time, why string) { return time.Time{}, "" }
func (failedConsumer) Load() measure.Load                       { return measure.Load{} }
func (u failedConsumer) Work(context.Context, ...int64) error   { return u.err }

func (u failedConsumer) Preview(context.Context, []source.Delivery) ([]admin.Prediction, error) {
	return nil, u.err
}

// recordFailedStore reports whether the run can continue without the named store, which failed. If the run
// can continue, err becomes the result of the store's consumers.
func (a *Assembly) recordFailedStore(store string, err error) bool {
	if !a.canRunWithout(store) {
		return false
	}
	a.failedStores[store] = err
	return true
}

// canRunWithout reports whether the run may continue without a store. The run may continue without a
// store if all consumers of the store have on_failure: continue.
func (a *Assembly) canRunWithout(store string) bool {
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

// recordUnresponsive waits up to 15 seconds for each store that the run may do without, and then continues
// without the store. Without the limit of 15 seconds, a server that accepts connections but never responds
// would stop the consumers of other stores from starting.
func (a *Assembly) recordUnresponsive(ctx context.Context) error {
	for _, s := range a.Stores {
		if len(a.Stores) == 1 || !a.canRunWithout(s.Name()) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, responseTimeout)
		_, err := s.Status(asking)
		late := asking.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if late && err != nil {
			a.recordFailedStore(s.Name(), s.Failed(err))
		}
	}
	return nil
}

// logRisk logs, at the start, the risk that the policy accepts for calls without an idempotency key.
func (a *Assembly) logRisk(c *policy.Consumer) {
	because := func(text string) []any {
		return []any{slog.String("consumer", c.Name), slog.String("because", legible.Printable(text))}
	}
	switch h := c.Handler.HTTP; {
	case h.MayDouble != "":
		a.options.Logger.Warn("calls have no key and may happen twice: after a crash or a lost answer they are repeated", because(h.MayDouble)...)
	case h.MayBeLost != "":
		a.options.Logger.Warn("calls have no key and may be lost: after a crash or a lost answer they are not repeated, and their messages are discarded", because(h.MayBeLost)...)
	}
}

// logWindow logs, at the start, how a message continues after a call with an unknown outcome. The parameter ends is a
// text that describes how the message ends if the call must not be repeated.
func (a *Assembly) logWindow(c *policy.Consumer, ends string) {
	says := ""
	switch window := c.Handler.HTTP.Window; window {
	case consumer.WindowAlways:
		says = "it is repeated with the same key, which the endpoint never forgets"
	case consumer.WindowNever:
		says = "it is not repeated, because the endpoint knows no keys: " + ends
	default:
		says = "it is repeated with the same key for " + legible.Span(window-c.Timeout) + " after the first call; then " + ends
	}
	a.options.Logger.Info("if the outcome of a call is unknown, "+says, "consumer", c.Name)
}

// boxOf returns the name of the command that lists the consumer's waiting messages.
func boxOf(c *policy.Consumer) string {
	if c.Sends() {
		return "intents"
	}
	return "inbox"
}
