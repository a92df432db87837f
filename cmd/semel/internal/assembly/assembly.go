// Package assembly opens the parts that a policy names and connects them. A database becomes a store. A
// file, a set of topics or a webhook becomes a source. A consumer gets its store, its source and its
// handlers.
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

// Options select the consumers to run and configure them.
type Options struct {
	// Consumer selects one consumer by name; empty for all consumers.
	Consumer string
	// IdleExit is how long a run without any work continues before it ends; see consumer.Config.
	IdleExit time.Duration
	// Stdin is the input of a source with the path "-".
	Stdin io.Reader
	// FromStart reads files from their beginning and ignores saved positions.
	FromStart bool
	// Patient lets a command that a person runs wait longer for a database to which another process writes
	// without a pause.
	Patient bool
	// ContinueOnFailure starts all consumers that can start, even if other consumers fail to start. The
	// policy of a failing consumer must say on_failure: continue.
	ContinueOnFailure bool
	// Who is the name of the user that starts the run. The audit trail records migrations with the name in Who.
	Who string
	// Replay is the replay to which all messages belong; nil outside of replays.
	Replay *semel.Replay
	// Logger is the log of all consumers.
	Logger *slog.Logger
	// Observers receive the events of all consumers.
	Observers []semel.Observer
	// Recorder returns the flight recorder for the named consumer; nil if nothing is recorded.
	Recorder func(name string) *consumer.Recorder
}

// Assembly holds the opened parts of a policy.
type Assembly struct {
	policy  *policy.Policy
	options Options
	// Stores are the opened stores, in the policy's order.
	Stores []*Store
	// publishers has the Kafka clients of consumers with a Kafka handler.
	publishers []*kafka.Publisher
	// keysMutex guards keys. A consumer may open its Redis store during the run, if the store was
	// unavailable at the start.
	keysMutex sync.Mutex
	// keyStores has the opened Redis stores, by name.
	keyStores map[string]*keyStore
	// hooksMutex guards hooks. Webhook receivers open their servers during a run.
	hooksMutex sync.Mutex
	// hookServers has the webhook servers, by address.
	hookServers map[string]*hookserver.Server
	// failedStores maps the names of stores that failed at the start to their errors. All consumers of a
	// failed store have on_failure: continue, so the run starts without these consumers.
	failedStores map[string]error
	// activeRuns has the consumers that have not stopped running.
	activeRuns runRegistry
}

// Open opens the databases for which the function want returns true, and does not change them. Open creates a missing
// database if the function create returns true.
func Open(p *policy.Policy, o Options, want, create func(*policy.Store) bool) (*Assembly, error) {
	a := &Assembly{policy: p, options: o, failedStores: map[string]error{}}
	for _, named := range p.Stores {
		if !want(named) || named.Redis != nil { // Redis stores are opened together with their consumers
			continue
		}
		s, err := openStore(named, openOptions{create: create(named), patient: o.Patient, connections: connections(p, named.Name), log: o.Logger})
		if errors.Is(err, errNoDatabase) {
			if err = fmt.Errorf("%w; correct the path", err); !p.Bare {
				err = fmt.Errorf("%w, or create it: %s", err, p.Command("migrate", "up"))
			}
		}
		if err != nil && a.recordFailedStore(named.Name, err) {
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

// Used returns a function that reports whether the named consumer uses a store. With an empty name, the
// function reports whether any consumer uses the store.
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

// connections returns the number of connections that the consumers of a store need: one for each worker, one
// for positions, one for operator commands and one for maintenance.
func connections(p *policy.Policy, store string) int {
	n := 3
	for _, c := range p.Consumers {
		if c.Store == store {
			n += c.Workers
		}
	}
	return n
}

// Close closes the stores and the publishers. If a database does not answer within closeWithin, Close
// returns an error with the name of the database, and the connections stay open until the process ends.
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

// store returns the opened store of this name, or nil if the store is not open.
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
	source    any // the source, or an object that wraps the source
	markEnded func()
	// kind is the kind of the source: file, kafka, webhook or none.
	kind    string
	outcome outcome
	// continueOnFailure reports whether the other consumers keep running when this consumer fails.
	continueOnFailure bool
}

// Run runs the consumer. Until Run returns, consumers that send this consumer's intents do not stop when
// they are idle.
func (r *Runner) Run(ctx context.Context) error {
	defer r.markEnded()
	err := r.Consumer.Run(ctx)
	r.outcome.set(err)
	return err
}

// Source returns a line for the terminal about the consumer's lag and the reason for a delay. Source returns
// "" if the lag is unknown.
func (r *Runner) Source() string {
	if s, ok := r.source.(interface{ line() string }); ok {
		return s.line()
	}
	return ""
}

// ReadBefore reports whether the source is a file without new lines since the last run. ReadBefore also
// returns the file's length in bytes.
func (r *Runner) ReadBefore() (int64, bool) {
	if s, ok := r.source.(interface{ readBefore() (int64, bool) }); ok {
		return s.readBefore()
	}
	return 0, false
}

// Consumers creates the selected consumers and their sources.
func (a *Assembly) Consumers(ctx context.Context) (map[string]*Runner, error) {
	all := map[string]*Runner{}
	for _, c := range a.policy.Consumers {
		if a.options.Consumer != "" && c.Name != a.options.Consumer {
			continue
		}
		one, err := a.newRunnerFor(ctx, c)
		if err != nil && c.ContinueOnFailure && ctx.Err() == nil {
			one = a.newRunner(c, failedConsumer{err}, nil)
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

// newRunnerFor creates a consumer and its source.
func (a *Assembly) newRunnerFor(ctx context.Context, c *policy.Consumer) (*Runner, error) {
	if err := a.failedStores[c.Store]; err != nil {
		return nil, err
	}
	if a.policy.Generational(c) {
		turning, err := a.newGenerationalConsumer(ctx, c)
		if err != nil {
			return nil, err
		}
		return a.newRunner(c, turning, turning), nil
	}
	source, err := a.source(c)
	if h, is := source.(*hookSource); is && err == nil {
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
	return a.newRunner(c, made, source), nil
}

// newRunner registers a consumer that is about to run. The parameter source is the consumer's source, or an
// object that wraps the source.
func (a *Assembly) newRunner(c *policy.Consumer, made Consumer, source any) *Runner {
	return &Runner{Consumer: made, source: source, markEnded: a.activeRuns.begin(c.Name), kind: a.SourceKind(c), continueOnFailure: c.ContinueOnFailure}
}

// PendingAge returns the alert threshold for the age of waiting messages, or 0 if the policy sets none for
// the consumer.
func (a *Assembly) PendingAge(consumer string) time.Duration {
	public, _ := admin.GenerationOf(consumer)
	if c := a.policy.Consumer(public); c != nil {
		return c.Alerts.PendingAge
	}
	return 0
}

// Reader creates the named consumer with another source. The consumer processes the given source to the end,
// and parks messages that would otherwise go to the dead-letter topic.
func (a *Assembly) Reader(ctx context.Context, name string, src source.Source) (Consumer, error) {
	c := *a.policy.Consumer(name)
	c.ParkDeadLetters()
	if err := a.enter(ctx, &c); err != nil {
		return nil, err
	}
	return a.consumer(ctx, &c, src)
}

// Worker creates the named consumer without a source. Without a source, the consumer can only process rows of
// its inbox. The name of the consumer may contain a generation; see admin.GenerationName.
func (a *Assembly) Worker(ctx context.Context, name string) (Consumer, error) {
	return a.inGeneration(ctx, name, nil)
}
