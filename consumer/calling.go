package consumer

import (
	"context"
	"errors"
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

// NewCalling returns a consumer whose handler has two parts. The function call makes a request to another system while
// no transaction is open. The function apply writes the consequences of the answer, in the transaction that also
// completes the message's claim. So the writes of apply happen once. The call happens at least once, so pass
// Message.IdempotencyKey to the other system.
//
// After a crash or an expired lease, several calls may be made for one message. The first answer whose transaction
// commits counts. The transaction of a later answer is rejected, because its claim is lost; semel.Counts counts later
// answers (Inbox.Lost).
//
// Errors of the functions call and apply are treated like errors of any handler. After an error of apply, the
// transaction is rolled back and the call is made again. If the transaction failed because of contention or because the
// store was down, and the claim is still valid, the call is not made again, and the same answer is applied again.
// Config.Timeout limits call and apply together. For a message without an effect, apply returns nil.
//
// The outcome of a call is recorded when its answer is applied. Config.Provider has the same meaning as with
// NewLeased, but Provider.Lookup must be nil.
//
// Config is as for NewLeased: StrategyInbox and, if there is a Source, AckOnReceipt. If the calls only read, and change
// nothing in the other system, Config can have StrategyMarker instead of StrategyInbox. With StrategyMarker the message
// is not claimed and nothing is written before the call. The call may be made any number of times, also concurrently by
// several processes that have the same message. A duplicate of an applied message causes no call. The answers of
// several messages are applied in one transaction, which also writes the marker of each message. If two processes have
// answers for the same message, the first committed marker counts. Provider is ignored. StrategyMarker is much faster;
// see docs/guides/calling-out.md.
//
// Process cannot be used with NewCalling. The parameter plans is for tests.
func NewCalling[Tx, Answer any](st store.TxStore[Tx], call func(ctx context.Context, m *semel.Message) (Answer, error), apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	n := needs{mechanism: byAnswer, store: st}
	if c.Strategy == StrategyMarker {
		n.mechanism = byLookup
	}
	if call == nil || apply == nil {
		n.noHandler = errors.New("the call function or the apply function is nil; pass both")
	}
	s, err := c.settings(n, plans)
	if err != nil {
		return nil, err
	}
	r := runner.NewAnswering(&s.run, st, call, apply)
	if n.mechanism == byLookup {
		return assemble(s, st, runner.NewLookups(r), engine.Handler[Call]{}), nil
	}
	return assemble(s, st, r, engine.Handler[Call]{}), nil
}

// Call is passed to handlers that call other systems, in place of a transaction; see NewLeased and NewKeyed.
type Call = runner.Call

// NewLeased does the same as New, for handlers that call other systems. No transaction is open while a handler runs. A
// message waits in the store's inbox. A process claims the message for a lease, extends the lease while the handler
// runs, and completes the message under the claim's token after the handler has returned. So only one process at a time
// calls for a message, if handlers obey their contexts and no process is frozen for longer than a lease. The call
// happens at least once: the call is repeated after a crash before its outcome was recorded, and if the lease was lost
// during the call. Pass Message.IdempotencyKey to the other system.
//
// A batch has one message, because a call cannot be undone when another message of the batch fails.
// Config.Workers limits the concurrent handlers. NewLeased needs a store with store.Inbox and store.Leases,
// StrategyInbox and, if there is a Source, AckOnReceipt. Process cannot be used.
func NewLeased[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{One: handle}, c, plans)
}

// NewLeasedSteps does the same as NewSteps, for steps that call other systems. No transaction is open while a step
// runs. A step runs at least once. After the completion of a step was recorded, the step never runs again.
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
	// Keep is how long a key is kept after its last change. Keep is required. Keep must not be shorter than
	// the time after which a duplicate can still arrive (see RetentionPolicy.Keep), because a later duplicate
	// causes another call. If Keep is too short, Run returns an error.
	Keep time.Duration
	// Delay is how late a producer, or a system between the producer and the broker, may send a duplicate.
	// Semel adds Delay to the time after which a duplicate can still arrive.
	Delay time.Duration
	// AllowVolatile is the reason why it is acceptable that the store loses keys and that calls are then made
	// twice. If AllowVolatile is empty, a store that is volatile, or whose durability is unknown, is
	// rejected.
	AllowVolatile string
	// FailOpen is the reason why the effect is idempotent by nature, so that repeating the effect, also concurrently,
	// does no harm. If FailOpen is set, handlers run without a key while the key store is down (fail open). Calls
	// without a key are logged, reported to observers (event "applied without a key") and counted
	// (semel.Counts.WithoutKey). After a call without a key, a duplicate of the message causes another call. The
	// consumer stays ready, and Ready returns a reason. If FailOpen is empty, while the store is down no calls are
	// made, no message is acked, and the consumer is not ready (fail closed).
	FailOpen string
}

// NewKeyed does the same as New, for handlers that call other systems and use no database. A message is claimed by a
// leased key, such as a key in Redis. After the claim, the handler runs, the key is completed, and the delivery is
// acked. The lease (Config.Inbox.Lease) is extended while the handler runs. Only one process at a time calls for a
// message, if handlers obey their contexts and no process is frozen for longer than a lease. The call happens at least
// once. The call is repeated after a crash before its outcome was recorded, if the lease was lost during the call, and
// if the store has lost the key. Pass Message.IdempotencyKey to the other system. Config.Provider says what happens
// after calls with an unknown outcome.
//
// The result of a handler decides about the key. The results nil and Duplicate complete the key. Retry and
// semel.PreconditionFailed release the key, because the attempt had no effect. Permanent, Park and Discard end the key
// permanently, with their reason. After any other error, a timeout or a panic, the outcome of the call is unknown.
//
// If another process holds the key, the consumer waits. Waiting is not counted as an attempt, and the message
// is not treated as a duplicate. A batch has one message. Config.Workers limits the concurrent handlers. With
// LanesPartition only one handler of a partition runs at a time. NewKeyed needs StrategyMarker.
//
// A consumer of NewKeyed has no inbox. So no wait is longer than Config.MaxInMemoryWait, and no message can be parked.
// Retry.OnExhausted, OnConflict and OnBadIdentity must be ActionDeadLetter or ActionHalt; OnConflict can also be
// ActionKeepFirst. A message that a handler parks ends as Retry.OnExhausted says. If a message was dead-lettered and
// the outcome of its call is unknown, its key keeps the state "outcome unknown" until leasedkey.Keys.Resolve ends the
// key. Process cannot be used. See package leasedkey.
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

// onlyKeys hides the other features of a key store. A database that stores keys may also have an inbox and
// markers, which a consumer with keys must not use.
type onlyKeys struct{ keystore.Store }

// Scope implements runner.Store. Keys have no numbers of sources, so Scope returns 0.
func (onlyKeys) Scope(context.Context, string, string, int64) (int64, error) { return 0, nil }

// logDurability logs how durable the key store is.
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

// coversKeys returns an error if a duplicate can arrive after its key was removed (H1).
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
