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
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

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
	// (semel.EventWithoutKey) and counted (semel.Counts.WithoutKey), copies of such messages
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
func NewKeyed(keys store.KeyStore, p KeyPolicy, handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
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

// onlyKeys hides what else a store of keys can do: a database has an inbox and markers as well,
// which are not of a consumer of keys.
type onlyKeys struct{ store.KeyStore }

// Scope implements anyStore. Keys have names, and no numbers.
func (onlyKeys) Scope(context.Context, string, string, int64) (int64, error) { return 0, nil }

// fitsKeys reports what of the policy or of the store is in the way of a consumer over keys.
func (c *settings) fitsKeys(st any) error {
	switch {
	case c.Strategy != StrategyMarker:
		return fmt.Errorf("with NewKeyed the Strategy is %v, and must be %v: the key is what recognises a copy", c.Strategy, StrategyMarker)
	case c.keys.Keep < max(leastKeep, c.Inbox.Lease):
		return fmt.Errorf("KeyPolicy.Keep is %v, and must be at least %v, and longer than a copy can take to come", c.keys.Keep, max(leastKeep, c.Inbox.Lease))
	case c.keys.Delay < 0:
		return fmt.Errorf("KeyPolicy.Delay is %v; it is a time, or 0", c.keys.Delay)
	}
	if degree, why := st.(onlyKeys).Durable(); degree > store.DurableExceptSeconds && c.keys.AllowVolatile == "" { // J4
		return fmt.Errorf("the store of the keys is %v (%s), so that calls may be made twice; make it durable, or say in KeyPolicy.AllowVolatile why that is bearable", degree, why)
	}
	return nil
}

// logDurability says at the start what the store may forget.
func (c *settings) logDurability(keys store.KeyStore) {
	degree, why := keys.Durable()
	log := c.Logger.Info
	if degree != store.Durable {
		log = c.Logger.Warn
	}
	told := []any{"consumer", c.Name, "keys", degree.String(), "by", why, "kept", legible.Span(c.keys.Keep)}
	if c.keys.AllowVolatile != "" {
		told = append(told, "bearable", c.keys.AllowVolatile)
	}
	log("calls are claimed by leased keys: one at a time, at least once, under one idempotency key; what the store of the keys forgets is called for again", told...)
}

// coversKeys says why keys are kept for a shorter time than a copy can take to come (H1); nil
// if they are not.
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
