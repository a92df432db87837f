package assembly

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// Consumer is a consumer of the policy. The type Consumer hides the transaction type of the store.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	Unfinished() []semel.Unfinished
	// Ready reports whether all parts of the consumer work. If Ready returns false, the returned text is the
	// reason.
	Ready() (bool, string)
	// Alive returns false, with a text about the reason, if the consumer makes no progress and is not paused by
	// an operator.
	Alive() (bool, string)
	// StoreDown returns the start and the cause of an outage of the store. While the store works, the result
	// since is zero.
	StoreDown() (since time.Time, why string)
	// Load returns how many messages and bytes the consumer has in memory.
	Load() measure.Load
	// Preview predicts the results of deliveries; see Preview of consumer.Consumer.
	Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error)
	// Work processes rows of the inbox; see Work of consumer.Consumer.
	Work(ctx context.Context, numbers ...int64) error
}

// consumer creates a consumer. The parameter src is nil for a consumer that only processes rows of its inbox.
func (a *Assembly) consumer(ctx context.Context, c *policy.Consumer, src source.Source) (Consumer, error) {
	if s := a.policy.Store(c.Store); s.Redis != nil {
		return a.newKeyedConsumer(ctx, c, s, src)
	}
	store := a.store(c.Store)
	switch {
	case c.Handler.Kafka != nil:
		publish, err := a.publisher(ctx, c)
		if err != nil {
			return nil, err
		}
		return store.newLeasedConsumer(publish, a.config(c, src))
	case c.Handler.HTTP != nil:
		endpoint, err := a.endpoint(c)
		switch {
		case err != nil:
			return nil, err
		case c.Handler.HTTP.Effects != nil:
			return a.newEffectsConsumer(ctx, c, store, endpoint, a.config(c, src))
		}
		if !c.Handler.HTTP.NoKey {
			a.logWindow(c, "its message is parked; decide with semel "+boxOf(c)+" resolve")
		}
		return store.newLeasedConsumer(func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return endpoint.Handle(ctx, m) }, a.config(c, src))
	}
	handlers, err := a.handlers(ctx, c, store)
	if err != nil {
		return nil, err
	}
	if err := a.checkKey(ctx, c, store); err != nil {
		return nil, err
	}
	consumer, err := store.consumer(ctx, handlers, c, a.config(c, src))
	switch {
	case errors.Is(err, semel.ErrSchema):
		return nil, a.policy.Fault("consumers."+c.Name+".dedup", err.Error(), "see docs/guides/adoption.md")
	case err != nil && c.Dedup != nil:
		return nil, store.Failed(err)
	}
	return consumer, err
}

func (a *Assembly) config(c *policy.Consumer, src source.Source) consumer.Config {
	config := c.Config()
	config.Source, config.Replay = src, a.options.Replay
	config.SenderWindows = a.policy.SenderWindows(c)
	config.IdleExit, config.MayEnd = a.options.IdleExit, a.mayEnd(c)
	if c.Rebuilds() {
		config.IdleExit, config.MayEnd = 0, nil
	}
	config.Logger = a.options.Logger
	config.Observers = a.options.Observers
	config.AuditKey = []byte(a.policy.Audit.Key)
	if a.options.Recorder != nil {
		config.Recorder = a.options.Recorder(c.Name)
	}
	return config
}

// otherwiseAction returns the result that the policy sets for a message whose statement changed a wrong number of rows.
// The circuit breaker counts neither the result in the key otherwise nor the result in the key on_precondition as a
// failure.
func otherwiseAction(word string) sqlhandler.Otherwise {
	switch word {
	case "park":
		return sqlhandler.OtherwisePark
	case "discard":
		return sqlhandler.OtherwiseDiscard
	case "fail":
		return sqlhandler.OtherwiseFail
	default:
		return sqlhandler.OtherwiseUnmet
	}
}

// withIntents returns a handler that runs the message's statements and then writes the message's intents.
func withIntents[Tx any](one *sqlhandler.Handler, run func(context.Context, Tx, *semel.Message) error, w *consumer.Intents[Tx]) func(context.Context, Tx, *semel.Message) error {
	if !one.HasIntents() {
		return run
	}
	return func(ctx context.Context, tx Tx, m *semel.Message) error {
		if err := run(ctx, tx, m); err != nil {
			return err
		}
		intents, err := one.Intents(m)
		if err != nil {
			return err
		}
		return w.Write(ctx, tx, m, intents...)
	}
}

// Horizon asks the brokers of the consumer's source how late they can redeliver a record. Horizon does not
// join a consumer group.
func (a *Assembly) Horizon(ctx context.Context, c *policy.Consumer) (source.Horizon, error) {
	src, err := a.source(c)
	if err != nil {
		return source.Horizon{}, err
	}
	defer src.Close(context.WithoutCancel(ctx))
	ask := src.Info().Horizon
	if ask == nil {
		return source.Horizon{}, fmt.Errorf("consumer %s: source %s does not say how long it keeps its messages", c.Name, c.From)
	}
	return ask(ctx)
}

// HasUnique reports whether the database has a unique constraint of this name.
func (s *Store) HasUnique(ctx context.Context, constraint string) (bool, error) {
	there, err := s.hasUnique(ctx, constraint)
	return there, s.Failed(err)
}

// runRegistry has the consumers of this process whose runs have not ended.
type runRegistry struct {
	mutex   sync.Mutex
	running map[string]bool
}

// begin registers a consumer that is about to run. The caller must call the returned function ended when the
// run has ended.
func (r *runRegistry) begin(name string) (ended func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.running == nil {
		r.running = map[string]bool{}
	}
	r.running[name] = true
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.running, name)
	}
}

// hasAny reports whether at least one of the named consumers is running.
func (r *runRegistry) hasAny(names []string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, name := range names {
		if r.running[name] {
			return true
		}
	}
	return false
}

// mayEnd returns a function that reports whether a sender may stop when its inbox is empty. The returned
// function reports false while a consumer in this process can still write intents for the sender. mayEnd
// returns nil if no consumer writes intents for the sender c.
func (a *Assembly) mayEnd(c *policy.Consumer) func() bool {
	writers := writersTo(a.policy, c)
	if writers == nil {
		return nil
	}
	return func() bool { return !a.activeRuns.hasAny(writers) }
}

// writersTo returns the consumers that write intents for a sender. writersTo leaves out consumers for which
// the sender itself writes intents, directly or through other senders. Two consumers that wait for each
// other would never stop.
func writersTo(p *policy.Policy, sender *policy.Consumer) (writers []string) {
	after := map[string]bool{sender.Name: true}
	for grown := true; grown; {
		grown = false
		for _, from := range p.Consumers {
			for _, to := range p.Consumers {
				if after[from.Name] && !after[to.Name] && from.WritesTo(to.Name) {
					after[to.Name], grown = true, true
				}
			}
		}
	}
	for _, c := range p.Consumers {
		if c.WritesTo(sender.Name) && !after[c.Name] {
			writers = append(writers, c.Name)
		}
	}
	return writers
}
