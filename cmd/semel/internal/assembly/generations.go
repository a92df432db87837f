package assembly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// generationalConsumer is a consumer with generations. When another generation becomes active during the run,
// generationalConsumer creates the consumer again for that generation, with a new source.
type generationalConsumer struct {
	assembly *Assembly
	policy   *policy.Consumer

	mutex         sync.Mutex
	running       currentConsumer // guarded by mutex
	earlierCounts semel.Counts    // counts of generations that are no longer active; guarded by mutex
	used          bool            // the first consumer has run; guarded by mutex
}

// currentConsumer is a consumer that works in one generation.
type currentConsumer struct {
	Consumer
	source source.Source
	number int64
}

// newGenerationalConsumer creates the consumer for the active generation before the run, so that faults of the consumer
// are found early.
func (a *Assembly) newGenerationalConsumer(ctx context.Context, c *policy.Consumer) (*generationalConsumer, error) {
	t := &generationalConsumer{assembly: a, policy: c}
	number, err := a.active(ctx, c)
	if err != nil {
		return nil, err
	}
	t.running, err = a.makeIn(ctx, c, consumer.Generation{Number: number})
	return t, err
}

// active returns the number of the consumer's active generation.
func (a *Assembly) active(ctx context.Context, c *policy.Consumer) (int64, error) {
	st := a.store(c.Store)
	err := st.BeginGenerations(ctx, c.Name)
	var all []admin.StoredGeneration
	if err == nil {
		all, err = st.Generations(ctx, c.Name)
	}
	for _, g := range all {
		if g.State == generations.Active {
			return g.Number, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("consumer %s has no active generation: it was removed from the table of generations: %w", c.Name, semel.ErrSchema)
	}
	return 0, st.Failed(err)
}

// KeptAs returns the name under which the store keeps the consumer's records. If the consumer has
// generations, the name contains the active generation.
func (s *Store) KeptAs(ctx context.Context, name string) (string, error) {
	all, err := s.Generations(ctx, name)
	for _, g := range all {
		if g.State == generations.Active {
			return admin.GenerationName(name, g.Number), nil
		}
	}
	return name, s.Failed(err)
}

// enter sets c.In to the active generation if the consumer has generations.
func (a *Assembly) enter(ctx context.Context, c *policy.Consumer) error {
	if !a.policy.Generational(c) {
		return nil
	}
	number, err := a.active(ctx, c)
	c.In = &consumer.Generation{Number: number}
	return err
}

// makeIn creates the consumer in a generation, with a separate source.
func (a *Assembly) makeIn(ctx context.Context, of *policy.Consumer, g consumer.Generation) (currentConsumer, error) {
	c := *of
	c.In = &g
	if g.Building {
		c.ParkDeadLetters()
		c.ReEmitIntents = false
		c.DeadLetter = nil
	}
	source, err := a.source(&c)
	if fault := (shape.Fault{}); errors.As(err, &fault) {
		return currentConsumer{}, fault
	}
	if err != nil {
		return currentConsumer{}, fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	one, err := a.consumer(ctx, &c, source)
	return currentConsumer{one, source, g.Number}, err
}

// inGeneration creates the named consumer. The name of the consumer may contain a generation.
func (a *Assembly) inGeneration(ctx context.Context, name string, src source.Source) (Consumer, error) {
	if c := a.policy.Consumer(name); c != nil && !a.policy.Generational(c) {
		return a.consumer(ctx, c, src)
	}
	public, number := admin.GenerationOf(name)
	c := a.policy.Consumer(public)
	if c == nil || !a.policy.Generational(c) {
		return nil, fmt.Errorf("the policy has no consumer %s with generations; use the policy that declares them", public)
	}
	all, err := a.store(c.Store).Generations(ctx, public)
	if err != nil {
		return nil, a.store(c.Store).Failed(err)
	}
	own := *c
	own.In = &consumer.Generation{Number: number}
	for _, g := range all {
		if g.Number == number && g.State == generations.Building {
			own.In.Building = true
		}
	}
	return a.consumer(ctx, &own, src)
}

// Run implements Consumer.
func (t *generationalConsumer) Run(ctx context.Context) error {
	return consumer.InGenerations(ctx, t.assembly.store(t.policy.Store), t.policy.Name, func(ctx context.Context, g consumer.Generation) error {
		one, err := t.consumerOf(ctx, g)
		if err != nil {
			return err
		}
		return one.Run(ctx)
	})
}

// consumerOf returns the consumer for a generation. The first call of the method returns the consumer
// that was created at the start. Later calls create a new consumer.
func (t *generationalConsumer) consumerOf(ctx context.Context, g consumer.Generation) (Consumer, error) {
	t.mutex.Lock()
	now, used := t.running, t.used
	t.used = true
	t.mutex.Unlock()
	if !used && now.number == g.Number {
		return now, nil
	}
	next, err := t.assembly.makeIn(ctx, t.policy, g)
	if err != nil {
		return nil, err
	}
	if now.number != g.Number {
		t.assembly.options.Logger.Info("the active generation has changed; the consumer continues in the new one", "consumer", t.policy.Name, "was", now.number, "is", g.Number)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.earlierCounts = sum(t.earlierCounts, now.Counts())
	t.running = next
	return next, nil
}

func (t *generationalConsumer) current() currentConsumer {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.running
}

// Work implements Consumer.
func (t *generationalConsumer) Work(ctx context.Context, numbers ...int64) error {
	return t.current().Work(ctx, numbers...)
}

// Preview implements Consumer.
func (t *generationalConsumer) Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error) {
	return t.current().Preview(ctx, all)
}

// Counts implements Consumer. Counts returns the sum over all generations of this run.
func (t *generationalConsumer) Counts() semel.Counts {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return sum(t.earlierCounts, t.running.Counts())
}

// Unfinished implements Consumer.
func (t *generationalConsumer) Unfinished() []semel.Unfinished { return t.current().Unfinished() }

// Ready implements Consumer.
func (t *generationalConsumer) Ready() (bool, string) { return t.current().Ready() }

// Alive implements Consumer.
func (t *generationalConsumer) Alive() (bool, string) { return t.current().Alive() }

// StoreDown implements Consumer.
func (t *generationalConsumer) StoreDown() (time.Time, string) { return t.current().StoreDown() }

// Load implements Consumer.
func (t *generationalConsumer) Load() measure.Load { return t.current().Load() }

func (t *generationalConsumer) line() string {
	if s, ok := t.current().source.(interface{ line() string }); ok {
		return s.line()
	}
	return ""
}

func (t *generationalConsumer) readBefore() (int64, bool) {
	if s, ok := t.current().source.(interface{ readBefore() (int64, bool) }); ok {
		return s.readBefore()
	}
	return 0, false
}

// sum adds two Counts field by field. All fields of Counts are numbers or structs of numbers.
func sum(a, b semel.Counts) semel.Counts {
	add(reflect.ValueOf(&a).Elem(), reflect.ValueOf(b))
	return a
}

func add(to, more reflect.Value) {
	for i := range to.NumField() {
		switch f := to.Field(i); f.Kind() {
		case reflect.Struct:
			add(f, more.Field(i))
		default:
			f.SetInt(f.Int() + more.Field(i).Int())
		}
	}
}

// Rebuilder creates the consumer that fills generation r.Generation. The messages of this consumer belong to
// the replay r. The consumer reads its source from the beginning and then follows the source.
func (a *Assembly) Rebuilder(ctx context.Context, c *policy.Consumer, r semel.Replay) (*Runner, error) {
	a.options.Replay = &r
	one, err := a.makeIn(ctx, c, consumer.Generation{Number: r.Generation, Building: true})
	if err != nil {
		return nil, err
	}
	return a.newRunner(c, one.Consumer, one.source), nil
}

// Far returns a function that reports how far a rebuild has read the consumer's source. The caller must call
// the result close after use.
func (a *Assembly) Far(c *policy.Consumer, generation int64) (far rebuild.Far, close func(), err error) {
	own := *c
	own.In = &consumer.Generation{Number: generation, Building: true}
	source := a.policy.Source(c.From)
	if source.File != nil {
		if source.File.Path == shape.Stdin {
			return nil, nil, fmt.Errorf("source %s is the standard input, which cannot be read twice", source.Name)
		}
		return &rebuild.File{Path: source.File.Path, Lane: a.lane(source.File.Path), Positions: a.store(c.Store), Name: admin.GenerationName(c.Name, generation)}, func() {}, nil
	}
	recovery, err := a.Recovery(&own)
	if err != nil {
		return nil, nil, err
	}
	return &rebuild.Topics{Recovery: recovery}, recovery.Close, nil
}

// StoreOf returns the opened store of a consumer.
func (a *Assembly) StoreOf(c *policy.Consumer) *Store { return a.store(c.Store) }

// Origin returns a separate reader for the consumer's source. The reader does not change the position or the
// group of the consumer.
func (a *Assembly) Origin(c *policy.Consumer) (replay.Origin, error) {
	s := a.policy.Source(c.From)
	logger := a.options.Logger.With(slog.String("consumer", c.Name), slog.String("source", s.Name))
	switch {
	case s.Kafka != nil:
		config, err := a.kafkaConfig(c, s, newLanes(logger, time.Now))
		if err != nil {
			return nil, err
		}
		return replay.NewTopics(config)
	case s.Webhook != nil:
		return nil, a.policy.Fault("consumers."+c.Name+".from", "webhooks cannot be read again; their messages are in the inbox", "run rows again with semel messages retry")
	case s.File.Path == shape.Stdin:
		return nil, a.policy.Fault("consumers."+c.Name+".from", "standard input cannot be read again", "write its messages to a file, and use that as source")
	}
	format, err := formatOf(s.File.Format)
	if err != nil {
		return nil, err
	}
	notice := func(what string) { logger.Warn(what) }
	return replay.NewFile(s.File.Path, a.lane(s.File.Path), file.Options{Format: format, MaxLine: int(s.File.MaxLine), Notice: notice}), nil
}

// Replayer creates the named consumer with another source. The consumer's messages belong to the replay r.
// The consumer parks messages that would go to the dead-letter topic, and does not send intents again for
// duplicates.
func (a *Assembly) Replayer(ctx context.Context, name string, src source.Source, r semel.Replay) (Consumer, error) {
	c := *a.policy.Consumer(name)
	if calls := c.Handler.HTTP != nil || c.Handler.Kafka != nil; calls && !r.Effects && !c.Replay.Looks {
		return nil, a.policy.Fault("consumers."+name+".replay.effects", "the replay has no external effects, but the handler calls another system", "start a replay with effects: real")
	}
	if err := a.enter(ctx, &c); err != nil {
		return nil, err
	}
	r.Generation = *c.Generation()
	a.options.Replay = &r
	c.ParkDeadLetters()
	c.ReEmitIntents = false
	return a.consumer(ctx, &c, src)
}
