// Package assembly opens the parts that a policy names and connects them: databases become stores, files, topics and
// webhooks become sources, and a store, a source and the handlers of the policy become a consumer.
package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hookserver"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
)

// Options select parts of a policy and configure them.
type Options struct {
	// Consumer is the name of the only wanted consumer; empty for all.
	Consumer string
	// IdleExit ends a run when nothing is left to do; see consumer.Config.
	IdleExit time.Duration
	// Stdin is the input for a source with the path "-".
	Stdin io.Reader
	// FromStart reads files from their beginning and ignores saved positions.
	FromStart bool
	// Patient gives a command that a person runs a long time to wait for a writer that never pauses.
	Patient bool
	// ContinueOnFailure starts consumers even if others cannot start, provided that their policy says on_failure:
	// continue.
	ContinueOnFailure bool
	// Who is the user who starts the run; it is recorded with migrations.
	Who string
	// Replay, if set, is the replay that the messages of the consumer's source belong to.
	Replay *semel.Replay
	// Logger is the log of the consumers.
	Logger *slog.Logger
	// Observers receive the events of the consumers.
	Observers []semel.Observer
	// Recorder, if set, returns the flight recorder for a run of the named consumer.
	Recorder func(name string) *consumer.Recorder
}

// Assembly holds the opened parts of a policy.
type Assembly struct {
	policy  *policy.Policy
	options Options
	// Stores are the opened stores, in the order of the file.
	Stores []*Store
	// publishers belong to consumers that publish.
	publishers []*kafka.Publisher
	// keysMutex guards keys. A consumer whose store was unavailable at the start opens it during its run.
	keysMutex sync.Mutex
	// keys are the opened stores of leased keys, by name.
	keys map[string]*keyStore
	// hooksMutex guards hooks, which receivers open during their runs.
	hooksMutex sync.Mutex
	// hooks are the servers of webhooks, by address.
	hooks map[string]*hookserver.Server
	// unfit has the errors of stores that cannot be used although all their consumers say on_failure: continue, by
	// name.
	unfit map[string]error
	// runs are the consumers whose runs have not ended.
	runs underWay
}

// Open opens the databases for which want returns true, and changes nothing in them. Open creates a missing database
// if create returns true.
func Open(p *policy.Policy, o Options, want, create func(*policy.Store) bool) (*Assembly, error) {
	a := &Assembly{policy: p, options: o, unfit: map[string]error{}}
	for _, named := range p.Stores {
		if !want(named) || named.Redis != nil { // keys are opened with their consumer
			continue
		}
		s, err := openStore(named, opening{create: create(named), patient: o.Patient, connections: connections(p, named.Name), log: o.Logger})
		if errors.Is(err, errNoDatabase) {
			if err = fmt.Errorf("%w; correct the path", err); !p.Bare {
				err = fmt.Errorf("%w, or create it: %s", err, p.Command("migrate", "up"))
			}
		}
		if err != nil && a.without(named.Name, err) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.Stores = append(a.Stores, s)
	}
	return a, nil
}

// Policy returns the policy that the assembly was opened for.
func (a *Assembly) Policy() *policy.Policy { return a.policy }

// Used returns a function that reports whether the named consumer, or any if the name is empty, uses a store.
func Used(p *policy.Policy, consumer string) func(*policy.Store) bool {
	return func(s *policy.Store) bool {
		for _, c := range p.Consumers {
			if c.Store == s.Name && (consumer == "" || c.Name == consumer) {
				return true
			}
		}
		return false
	}
}

// connections returns the number of connections that the consumers of a store need: one for each worker, one for
// positions, one for reading operators and one for maintenance (retention, operator controls).
func connections(p *policy.Policy, store string) int {
	n := 3
	for _, c := range p.Consumers {
		if c.Store == store {
			n += c.Workers
		}
	}
	return n
}

// Close closes the stores and the publishers. If a database does not answer within closeWithin, Close returns an
// error that names it and leaves its connections open; they end with the process.
func (a *Assembly) Close() error {
	for _, p := range a.publishers {
		p.Close()
	}
	var errs []error
	a.closeHooks()
	a.closeKeys()
	for _, s := range a.Stores {
		errs = append(errs, s.closeWithin(closeWithin))
	}
	return errors.Join(errs...)
}

// store returns the opened store of this name; nil if it is not open.
func (a *Assembly) store(name string) *Store {
	for _, s := range a.Stores {
		if s.Name() == name {
			return s
		}
	}
	return nil
}

// Runner is a consumer with its source.
type Runner struct {
	Consumer
	source any // the source, or an object that knows it
	ended  func()
	// kind is the kind of the source.
	kind    string
	outcome outcome
	// continues is true if the other consumers continue when this one fails.
	continues bool
}

// Run runs the consumer. While it runs, senders that it writes intents for do not end idle.
func (r *Runner) Run(ctx context.Context) error {
	defer r.ended()
	err := r.Consumer.Run(ctx)
	r.outcome.set(err)
	return err
}

// Source returns a text for the terminal: how far the consumer is behind its source, and what delays it; empty if
// that is unknown.
func (r *Runner) Source() string {
	if s, ok := r.source.(interface{ line() string }); ok {
		return s.line()
	}
	return ""
}

// ReadBefore reports whether the source is a file that ends where the last run stopped, and returns that offset in
// bytes.
func (r *Runner) ReadBefore() (int64, bool) {
	if s, ok := r.source.(interface{ readBefore() (int64, bool) }); ok {
		return s.readBefore()
	}
	return 0, false
}

// Consumers makes the wanted consumers with their sources.
func (a *Assembly) Consumers(ctx context.Context) (map[string]*Runner, error) {
	all := map[string]*Runner{}
	for _, c := range a.policy.Consumers {
		if a.options.Consumer != "" && c.Name != a.options.Consumer {
			continue
		}
		one, err := a.prepared(ctx, c)
		if err != nil && c.ContinueOnFailure && ctx.Err() == nil {
			one = a.runner(c, unstarted{err}, nil)
			one.outcome.set(err)
			err = nil
		}
		if err != nil {
			return nil, err
		}
		all[c.Name] = one
	}
	return all, nil
}

// prepared makes a consumer with its source.
func (a *Assembly) prepared(ctx context.Context, c *policy.Consumer) (*Runner, error) {
	if err := a.unfit[c.Store]; err != nil {
		return nil, err
	}
	if a.policy.Generational(c) {
		turning, err := a.turning(ctx, c)
		if err != nil {
			return nil, err
		}
		return a.runner(c, turning, turning), nil
	}
	source, err := a.source(c)
	if h, is := source.(*hooks); is && err == nil {
		err = h.open()
	}
	if fault := (shape.Fault{}); errors.As(err, &fault) {
		return nil, fault
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	made, err := a.consumer(ctx, c, source)
	if err != nil {
		return nil, err
	}
	return a.runner(c, made, source), nil
}

// runner registers a consumer that will run. source is its source, or an object that knows it.
func (a *Assembly) runner(c *policy.Consumer, made Consumer, source any) *Runner {
	return &Runner{Consumer: made, source: source, ended: a.runs.begin(c.Name), kind: a.SourceKind(c), continues: c.ContinueOnFailure}
}

// PendingAge returns the maximum age of waiting messages that the policy of the consumer sets; 0 if it sets none.
func (a *Assembly) PendingAge(consumer string) time.Duration {
	public, _ := admin.GenerationOf(consumer)
	if c := a.policy.Consumer(public); c != nil {
		return c.Alerts.PendingAge
	}
	return 0
}

// Reader makes the named consumer with another source, which it reads to its end. The consumer parks messages that
// would go to the dead-letter topic.
func (a *Assembly) Reader(ctx context.Context, name string, src source.Source) (Consumer, error) {
	c := *a.policy.Consumer(name)
	c.ParkDeadLetters()
	if err := a.enter(ctx, &c); err != nil {
		return nil, err
	}
	return a.consumer(ctx, &c, src)
}

// Worker makes the named consumer without its source, to work on rows of its inbox. The name may include a generation
// (admin.GenerationName).
func (a *Assembly) Worker(ctx context.Context, name string) (Consumer, error) {
	return a.inGeneration(ctx, name, nil)
}
