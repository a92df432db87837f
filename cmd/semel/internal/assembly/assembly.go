// Package assembly opens what a policy names and puts it together: databases
// become stores, files become sources, and both with a handler of statements
// become consumers.
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

// Options say what is wanted of a policy.
type Options struct {
	// Consumer is the only one that is wanted; empty for all.
	Consumer string
	// IdleExit ends a run; see consumer.Config.
	IdleExit time.Duration
	// Stdin is what a source of the path "-" reads.
	Stdin io.Reader
	// FromStart reads files from their beginning, whatever their positions say.
	FromStart bool
	// Patient lets commands of a person wait long for who writes all the time.
	Patient bool
	// ContinueOnFailure lets consumers run beside those that cannot start, if their policy says
	// on_failure: continue.
	ContinueOnFailure bool
	// Who starts a run, for the record of what it migrates.
	Who string
	// Replay, if set, is the replay that what the consumer's source has is part of.
	Replay *semel.Replay
	// Logger gets the log of the consumers.
	Logger *slog.Logger
	// Observers are told what consumers do.
	Observers []semel.Observer
	// Recorder, if set, gives the recorder of a consumer's run, by the name of the consumer.
	Recorder func(name string) *consumer.Recorder
}

// Assembly holds opened stores of a policy.
type Assembly struct {
	policy  *policy.Policy
	options Options
	// Stores are the opened ones, in the order of the file.
	Stores []*Store
	// publishers are those of the consumers.
	publishers []*kafka.Publisher
	// keysMutex guards what follows: a consumer whose store was away opens it in its run.
	keysMutex sync.Mutex
	// keys are the stores of leased keys that were opened, by name.
	keys map[string]*keyStore
	// hooksMutex guards what follows: receivers open it in their runs.
	hooksMutex sync.Mutex
	// hooks are the servers of webhooks, by address.
	hooks map[string]*hookserver.Server
	// unfit is why stores cannot be used whose consumers all let the others go on, by name.
	unfit map[string]error
	// runs are the consumers that have not ended.
	runs underWay
}

// Open opens the databases that want names and changes nothing in them; create
// says for which a database may be created.
func Open(p *policy.Policy, o Options, want, create func(*policy.Store) bool) (*Assembly, error) {
	a := &Assembly{policy: p, options: o, unfit: map[string]error{}}
	for _, named := range p.Stores {
		if !want(named) || named.Redis != nil { // keys are opened with their consumer
			continue
		}
		s, err := openStore(named, opening{create: create(named), patient: o.Patient, connections: connections(p, named.Name), log: o.Logger})
		if errors.Is(err, errNoDatabase) {
			if err = fmt.Errorf("%w; correct the path", err); !p.Bare {
				err = fmt.Errorf("%w, or create it: semel migrate up --config %s", err, p.File)
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

// Policy is what the stores were opened for.
func (a *Assembly) Policy() *policy.Policy { return a.policy }

// Used reports whether a wanted consumer of the policy uses the store.
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

// connections is how many connections the consumers of a store need: one for
// each worker, one for positions, one for whoever looks, and one for what is done beside:
// retention, and what operators want.
func connections(p *policy.Policy, store string) int {
	n := 3
	for _, c := range p.Consumers {
		if c.Store == store {
			n += c.Workers
		}
	}
	return n
}

// Close closes the stores, and what consumers publish with. A store whose database does
// not answer is left alone after closeWithin, and the error names it: the process ends
// its connections.
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

// store is the opened store of this name; nil if it is not open.
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
	source any // the source, or what knows it
	ended  func()
	// kind is that of its source.
	kind    string
	outcome outcome
	// continues says that the other consumers go on when this one fails.
	continues bool
}

// Run runs the consumer; senders that it writes to may end idle after it.
func (r *Runner) Run(ctx context.Context) error {
	defer r.ended()
	err := r.Consumer.Run(ctx)
	r.outcome.set(err)
	return err
}

// Source says for a person how far the consumer is behind its source, and what
// holds it up; empty where that is not known.
func (r *Runner) Source() string {
	if s, ok := r.source.(interface{ line() string }); ok {
		return s.line()
	}
	return ""
}

// ReadBefore reports whether the source is a file that ends where the last run
// stopped, and at which byte that is.
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

// runner takes note of a consumer that will run. source is its source, or what knows it.
func (a *Assembly) runner(c *policy.Consumer, made Consumer, source any) *Runner {
	return &Runner{Consumer: made, source: source, ended: a.runs.begin(c.Name), kind: a.SourceKind(c), continues: c.ContinueOnFailure}
}

// PendingAge is how old the oldest message of a consumer may become that waits; 0
// where its policy does not say.
func (a *Assembly) PendingAge(consumer string) time.Duration {
	public, _ := admin.GenerationOf(consumer)
	if c := a.policy.Consumer(public); c != nil {
		return c.Alerts.PendingAge
	}
	return 0
}

// Reader makes the consumer of this name with another source than its own, which it
// reads to its end. That keeps no dead letters: what would go there is parked.
func (a *Assembly) Reader(ctx context.Context, name string, src source.Source) (Consumer, error) {
	c := *a.policy.Consumer(name)
	c.ParkDeadLetters()
	if err := a.enter(ctx, &c); err != nil {
		return nil, err
	}
	return a.consumer(ctx, &c, src)
}

// Worker makes the consumer of this name without its source, to work on rows of its
// inbox. The name may be of a generation (admin.GenerationName).
func (a *Assembly) Worker(ctx context.Context, name string) (Consumer, error) {
	return a.inGeneration(ctx, name, nil)
}
