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

// NewCalling returns a consumer that calls outside and writes inside: call asks somebody
// else while no transaction is open, and apply writes into tx what follows from the
// answer, in the one transaction that completes the message's claim under its token. So
// what apply writes happens once, while the call happens at least once and needs
// Message.IdempotencyKey, as with NewLeased.
//
// Of several calls for a message, after a crash or a lease that ended, the first answer
// whose transaction commits counts. A later one changes nothing: its claim is lost, and
// semel.Counts counts it (Inbox.Lost).
//
// An error of call, or of apply, decides on the message as that of any handler; after one
// of apply nothing of the transaction is left, and the call is made again. It is not made
// again where the transaction only met contention, or a store that was down, and the
// claim lasted: then the same answer is applied anew. Config.Timeout holds for both
// together. A message without an effect needs no other form: apply returns nil.
//
// What became of a call is known when its answer is applied. Provider holds for calls as with
// NewLeased, without Lookup.
//
// Config is what NewLeased needs: StrategyInbox and, where there is a Source,
// AckOnReceipt. Or it is StrategyMarker, for a call that changes nothing by itself,
// so that what it answers is all: then no claim is taken and nothing is written before the
// call, which is made any number of times, by several processes at once where copies
// arrive; a duplicate of what has taken effect calls nobody. The answers of several
// messages share a transaction, in which each is marked, and whose mark is first counts.
// Provider has no meaning then. It is much faster: see docs/guides/calling-out.md. Process is not
// for either. Plans are for tests.
func NewCalling[Tx, Answer any](st store.TxStore[Tx], call func(ctx context.Context, m *semel.Message) (Answer, error), apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	if st == nil || call == nil || apply == nil {
		return nil, fmt.Errorf("semel: consumer %q: NewCalling needs an opened store, a function that calls and one that applies the answer; one of them is nil", c.Name)
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

// Call is what handlers that call out get in place of a transaction; see NewLeased and NewKeyed.
type Call = runner.Call

// NewLeased is New for handlers that call out: what they do is in no transaction, and none is
// open while they run. A message waits in the store's inbox, is claimed for a lease that is
// extended while its handler runs, and is completed under its token when the handler has
// returned. So of the processes of a consumer one at a time calls for a message, as long as
// handlers heed their contexts and processes are not frozen for longer than a lease. The call
// happens at least once: again after a crash between it and its record, and where the lease was
// lost meanwhile. Give the other side Message.IdempotencyKey.
//
// A flight has one message, since no call can be rolled back for a neighbour's sake;
// Config.Workers bounds how many run at once. It needs a store with store.Inbox and
// store.Leases, StrategyInbox, and, where there is a Source, AckOnReceipt: receipts are
// transactions of the store, and the only ones. Process is not for it.
func NewLeased[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{One: handle}, c, plans)
}

// NewLeasedSteps is NewSteps for steps that call out: no transaction is open while a step runs.
// A step is done at least once, and never again after its end was written.
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

// KeyPolicy says how the keys of NewKeyed are kept.
type KeyPolicy struct {
	// Keep is how long a key is kept after its last change. Required, and not shorter than
	// the horizon, which is how late a copy can come (see RetentionPolicy.Keep): what
	// comes later is called for again. A run refuses to start if it is.
	Keep time.Duration
	// Delay is how late a producer, or what lies between it and the broker, may send a
	// copy. It is part of the horizon.
	Delay time.Duration
	// AllowVolatile says why it is bearable that the store may forget keys, and calls be made
	// twice. Without it a store that is volatile, or does not say, is refused.
	AllowVolatile string
	// FailOpen says why the effect is idempotent by nature, so that repeating it, also
	// by several processes at once, does no harm. With it messages are called for without a
	// key while the store does not work (fail open): this is logged, told
	// (event "applied without a key") and counted (semel.Counts.WithoutKey), copies of such messages
	// are called for again, and the consumer stays ready, with the reason. Empty: nobody is
	// called then, nothing is settled, and the consumer is not ready (fail closed).
	FailOpen string
}

// NewKeyed is New for handlers that call out, without any database: a message is claimed by
// a leased key, such as one in Redis, its handler is called, the key is completed, and then
// the source is told. The lease, Config.Inbox.Lease, is extended while the handler runs. Of
// the processes of a consumer one at a time calls for a message, as long as handlers heed
// their contexts and processes are not frozen for longer than a lease. The call happens at
// least once: again after a crash between it and its record, where the lease was lost
// meanwhile, and where the store has forgotten. Give the other side
// Message.IdempotencyKey. Config.Provider says what becomes of calls of unknown outcome.
//
// How a handler ends: nil, and Duplicate, complete the key. Retry and
// semel.PreconditionFailed free it: this attempt had no effect. Permanent, Park and Discard
// end it for good, with their reason. What became of the call is not known after any other
// error, a time-out or a panic.
//
// A key that somebody else has is waited for, as no attempt; it is never a duplicate. A flight
// has one message; Config.Workers bounds how many run at once, and with LanesPartition one of
// a partition does. It needs StrategyMarker.
//
// There is no inbox: no wait is longer than Config.MaxInMemoryWait, and nothing can be parked.
// Retry.OnExhausted, OnConflict and OnBadIdentity are ActionDeadLetter or ActionHalt (OnConflict also
// ActionKeepFirst), and what a handler parks ends as Retry.OnExhausted says. A key whose message
// was dead-lettered with an outcome that is unknown stays so: leasedkey.Keys.Resolve ends it.
// Process is not for it: see package leasedkey.
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

// onlyKeys hides the other features of a store of keys. A database also has an inbox and markers, which
// a consumer over keys must not use.
type onlyKeys struct{ keystore.Store }

// Scope implements runner.Store. Keys have names and no numbers.
func (onlyKeys) Scope(context.Context, string, string, int64) (int64, error) { return 0, nil }

// logDurability logs at the start whether the store of the keys may forget keys.
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
	log("calls are claimed by leased keys: one at a time, at least once, under one idempotency key; what the store of the keys forgets is called for again", told...)
}

// coversKeys returns an error if a copy can come later than keys are kept (H1).
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
