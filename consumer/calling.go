package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// NewCalling returns a consumer whose handler has two parts. call makes a request to another system while no
// transaction is open. apply writes what follows from the answer, in the transaction that completes the message's
// claim under its token. So what apply writes happens once. The call happens at least once and needs
// Message.IdempotencyKey, as with NewLeased.
//
// After a crash or an expired lease a message may be called for more than once. The first answer whose transaction
// commits counts. A later answer changes nothing: its claim is lost, and semel.Counts counts it (Inbox.Lost).
//
// An error of call or of apply decides about the message like an error of any handler. After an error of apply the
// transaction is rolled back and the call is made again. If the transaction only met contention or a store that
// was down, and the claim is still valid, the same answer is applied again without a call. Config.Timeout applies
// to both parts together. For a message without an effect apply returns nil.
//
// The outcome of a call is recorded when its answer is applied. Provider applies as with NewLeased, without
// Lookup.
//
// Config is as for NewLeased: StrategyInbox and, if there is a Source, AckOnReceipt. For calls that change
// nothing, and only return an answer, Config can have StrategyMarker instead. Then no claim is taken and nothing
// is written before the call. The call may be made any number of times, also concurrently by several processes
// that have copies; a duplicate of an applied message causes no call. The answers of several messages share a
// transaction, in which each message is marked; the first mark counts. Provider has no meaning then. This is much
// faster; see docs/guides/calling-out.md.
//
// Process works with neither. plans are for tests.
func NewCalling[Tx, Answer any](st store.TxStore[Tx], call func(ctx context.Context, m *semel.Message) (Answer, error), apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	if st == nil || call == nil || apply == nil {
		return nil, fmt.Errorf("semel: consumer %q: NewCalling needs a store, a call function and an apply function; one of them is nil", c.Name)
	}
	if c.Provider.Lookup != nil {
		return nil, fmt.Errorf("semel: consumer %q: Provider.Lookup is set, and with NewCalling it could say that a call took effect, and not what it answered, which apply needs; leave it out", c.Name)
	}
	way := byAnswer
	if c.Strategy == StrategyMarker {
		way = byLookup
	}
	s, err := c.settings(needs{way: way, store: st}, plans)
	if err != nil {
		return nil, err
	}
	r := runner.NewAnswering(&s.run, st, call, apply)
	if way == byLookup {
		return assemble(s, st, runner.NewLookups(r), engine.Handler[Call]{}), nil
	}
	return assemble(s, st, r, engine.Handler[Call]{}), nil
}

// Call is passed to handlers that call other systems, in place of a transaction; see NewLeased and NewKeyed.
type Call = runner.Call

// NewLeased is New for handlers that call other systems. No transaction is open while a handler runs. A message
// waits in the store's inbox. A process claims it for a lease, which is extended while the handler runs, and
// completes it under the claim's token after the handler has returned. So of the processes of a consumer one at a
// time calls for a message, as long as handlers heed their contexts and no process is frozen for longer than a
// lease. The call happens at least once: it is repeated after a crash before its outcome was recorded, and if the
// lease was lost meanwhile. Pass Message.IdempotencyKey to the other system.
//
// A batch has one message, because a call cannot be rolled back because of another message. Config.Workers limits
// the concurrent handlers. NewLeased needs a store with store.Inbox and store.Leases, StrategyInbox and, if there
// is a Source, AckOnReceipt: receipts are the only transactions of the store. Process cannot be used.
func NewLeased[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{One: handle}, c, plans)
}

// NewLeasedSteps is NewSteps for steps that call other systems. No transaction is open while a step runs. A step
// runs at least once, and never again after its completion was recorded.
func NewLeasedSteps[Tx any](st store.TxStore[Tx], steps []Step[Call], c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{Steps: stepsOf(steps)}, c, plans)
}

func newLeased[Tx any](st store.TxStore[Tx], h engine.Handler[Call], policy Config, plans []faults.Plan) (*Consumer[Call], error) {
	c, err := policy.settings(needsOf(&h, byClaim, st), plans)
	if err != nil {
		return nil, err
	}
	return assemble(c, st, runner.NewClaims(&c.run, st), h), nil
}

// KeyPolicy configures the keys of NewKeyed.
type KeyPolicy struct {
	// Keep is how long a key is kept after its last change. Keep is required and must not be shorter than the
	// horizon, which is how late a copy can arrive (see RetentionPolicy.Keep): a later copy would be called for
	// again. A run does not start with a shorter Keep.
	Keep time.Duration
	// Delay is how late a producer, or a system between the producer and the broker, may send a copy. Delay is
	// part of the horizon.
	Delay time.Duration
	// AllowVolatile is the reason why it is acceptable that the store may lose keys and calls may then be made
	// twice. Without it a store that is volatile, or whose durability is unknown, is refused.
	AllowVolatile string
	// FailOpen is the reason why the effect is idempotent by nature, so that repeating it, also concurrently, does
	// no harm. If it is set, messages are called for without a key while the key store is down (fail open). This
	// is logged, reported to observers (event "applied without a key") and counted (semel.Counts.WithoutKey).
	// Copies of such messages are called for again. The consumer stays ready, with a reason. If it is empty, no
	// calls are made while the store is down, nothing is settled, and the consumer is not ready (fail closed).
	FailOpen string
}

// NewKeyed is New for handlers that call other systems without any database. A message is claimed by a leased key,
// such as one in Redis; then its handler runs, the key is completed, and the delivery is acked. The lease
// (Config.Inbox.Lease) is extended while the handler runs. Of the processes of a consumer one at a time calls for
// a message, as long as handlers heed their contexts and no process is frozen for longer than a lease. The call
// happens at least once: it is repeated after a crash before its outcome was recorded, if the lease was lost
// meanwhile, and if the store has lost the key. Pass Message.IdempotencyKey to the other system. Config.Provider
// says what happens after calls with an unknown outcome.
//
// The result of a handler decides about the key. nil and Duplicate complete it. Retry and semel.PreconditionFailed
// release it: this attempt had no effect. Permanent, Park and Discard end it permanently, with their reason. After
// any other error, a timeout or a panic, the outcome of the call is unknown.
//
// If another process holds the key, the consumer waits. Waiting is not an attempt, and the message is not a
// duplicate. A batch has one message. Config.Workers limits the concurrent handlers; with LanesPartition one
// handler of a partition runs at a time. NewKeyed needs StrategyMarker.
//
// There is no inbox: no wait is longer than Config.MaxInMemoryWait, and no message can be parked.
// Retry.OnExhausted, OnConflict and OnBadIdentity must be ActionDeadLetter or ActionHalt (OnConflict also
// ActionKeepFirst), and a message that a handler parks ends as Retry.OnExhausted says. If a message was
// dead-lettered and the outcome of its call is unknown, the key stays so until leasedkey.Keys.Resolve ends it.
// Process cannot be used; see package leasedkey.
func NewKeyed(keys keystore.Store, p KeyPolicy, handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	h := engine.Handler[Call]{One: handle}
	n := needsOf(&h, byKey, nil)
	n.keys = p
	if keys != nil {
		n.store = onlyKeys{keys}
	}
	s, err := c.settings(n, plans)
	if err != nil {
		return nil, err
	}
	s.logDurability(keys)
	made := assemble[Call](s, onlyKeys{keys}, nil, h)
	made.failOpen = runner.NewFailOpenPath(&s.run)
	made.runner = runner.NewLeasedKeys(&s.run, keys, made.failOpen, made.reporter.Reporter)
	return made, nil
}

// onlyKeys hides the other features of a key store. A database also has an inbox and markers, which a consumer
// with keys must not use.
type onlyKeys struct{ keystore.Store }

// Scope implements runner.Store. Keys need no scopes.
func (onlyKeys) Scope(context.Context, string, string, int64) (int64, error) { return 0, nil }

// logDurability logs at the start how durable the key store is.
func (c *settings) logDurability(keys keystore.Store) {
	degree, why := keys.Durable()
	log := c.Logger.Info
	if degree != keystore.Durable {
		log = c.Logger.Warn
	}
	told := []any{"consumer", c.Name, "keys", degree.String(), "by", why, "kept", legible.Span(c.keys.Keep)}
	if c.keys.AllowVolatile != "" {
		told = append(told, "bearable", c.keys.AllowVolatile)
	}
	log("calls are claimed by leased keys: one at a time, at least once, with the same idempotency key; if the key store loses a key, the call is made again", told...)
}

// coversKeys returns an error if a copy can arrive later than keys are kept (H1).
func (c *settings) coversKeys(ctx context.Context, info source.Info) error {
	within := &upkeep.Retention{Guard: c.guard, Keep: c.keys.Keep, Delay: c.keys.Delay, Retries: c.retention.Retries}
	h, err := within.Horizon(ctx, info)
	if err != nil {
		return err
	}
	if err = within.Covers(h); err == nil {
		c.Logger.Info("keys are kept for longer than a copy can take to come", "consumer", c.Name, "kept", legible.Span(c.keys.Keep), "horizon", legible.Span(h.Late), "of", h.Why)
	}
	return err
}
