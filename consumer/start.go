package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/sources"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// Check makes the checks that each start makes before the first fetch. Check returns an error if the store's schema
// does not fit this release, if identities are determined in another way than the store has recorded
// (semel.ErrIdentityChanged), or if the name belongs to another consumer (semel.ErrForeignOwner). Check also records
// how identities are determined, and the owner of the name. TryMark and Accept record these two facts with their first
// call. On a store with a single writer, such as SQLite, call Check before the first transaction. Without this call of
// Check, the caller's transaction would wait for a transaction of the store itself.
func (c *Consumer[Tx]) Check(ctx context.Context) error { return c.checkStore(ctx) }

// check checks that store and source fit the policy, and returns the Info of the source.
func (c *Consumer[Tx]) check(ctx context.Context, src source.Source) (source.Info, error) {
	info, err := infoOf(c.config, src)
	if err != nil {
		return info, err
	}
	if err := c.checkStore(ctx); err != nil {
		return info, err
	}
	if !inboxOnly(src) { // a run without a broker does not know how late duplicates can arrive
		if err := c.config.retention.Retain(ctx, c.store, info); err != nil {
			return info, err
		}
	}
	return info, c.checkSource(ctx, info)
}

// checkStore checks that the store's tables fit this release, and that the consumer's name may be used; see
// Check.
func (c *Consumer[Tx]) checkStore(ctx context.Context) error {
	if checker, ok := c.store.(admin.SchemaChecker); ok {
		if err := checker.Check(ctx); err != nil {
			c.reporter.SetReady("store", err.Error())
			return fmt.Errorf("semel: consumer %q cannot start: %w", c.config.Name, err)
		}
	}
	c.reporter.SetReady("store", "")
	for _, step := range []func(context.Context) error{
		c.beginGenerations, c.names.WarnSimilar, c.canEmit, c.names.Claim, func(ctx context.Context) error { return c.names.Record(ctx, false) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return c.config.retention.LookBack(ctx, c.store)
}

// deriveOnce records once how identities are determined. The caller of deriveOnce has an open transaction of
// the store.
func (c *Consumer[Tx]) deriveOnce(ctx context.Context) error {
	if c.names.Recorded.Load() {
		return nil
	}
	if err := c.config.retention.LookBack(ctx, c.store); err != nil {
		return err
	}
	return c.names.Record(ctx, c.config.limits.SingleWriter)
}

// infoOf returns the Info of a source.
func infoOf(c *settings, src source.Source) (info source.Info, err error) {
	if err := c.guard.Source("Info", func() error { info = src.Info(); return nil }); err != nil {
		return info, fmt.Errorf("semel: consumer %q: %w", c.Name, err)
	}
	return info, nil
}

// inboxOnly reports whether a run with this source processes the inbox and then ends.
func inboxOnly(src source.Source) bool { return src == sources.None{Ends: true} }

// checkSource checks that the source fits the policy, and prepares the store for the source.
func (c *Consumer[Tx]) checkSource(ctx context.Context, info source.Info) error {
	if info.Unordered && c.config.Lanes != LanesNone {
		return fmt.Errorf("semel: consumer %q: Lanes is %v, and the messages of its source have no order that could be kept; write Lanes: consumer.LanesNone: %w", c.config.Name, c.config.Lanes, semel.ErrUnsupported)
	}
	keyed := c.config.mechanism == byKey
	if keyed {
		if err := c.config.coversKeys(ctx, info); err != nil {
			return err
		}
	}
	if info.Positions != nil && !keyed { // with keys, a second reading of a message is recognised by its key
		positions, ok := c.store.(source.PositionStore)
		if !ok {
			return fmt.Errorf("semel: consumer %q: its source needs positions, but its store cannot keep them: %w", c.config.Name, semel.ErrUnsupported)
		}
		if err := c.config.guard.Source("Positions", func() error { info.Positions(c.config.controlName(), positions); return nil }); err != nil {
			return fmt.Errorf("semel: consumer %q: %w", c.config.Name, err)
		}
	}
	if err := c.checkDeadLetters(info); err != nil {
		return err
	}
	return c.control.Start(ctx)
}

func (c *Consumer[Tx]) checkDeadLetters(info source.Info) error {
	if !c.config.deadLetters() {
		return nil
	}
	if info.DeadLetters == nil {
		return fmt.Errorf("semel: consumer %q: its policy ends messages in dead letters and its source keeps none (nor does Process); use ActionPark, if the store has an inbox, ActionHalt, or a source that does: %w", c.config.Name, semel.ErrUnsupported)
	}
	if err := c.config.guard.Source("DeadLetters", func() error { return info.DeadLetters(c.config.Name) }); err != nil {
		return fmt.Errorf("semel: consumer %q: dead letters: %w", c.config.Name, err)
	}
	return nil
}

// beginGenerations records the consumer's first generation in the store.
func (c *Consumer[Tx]) beginGenerations(ctx context.Context) error {
	if g := c.config.Generation; g == nil || g.Number != 0 {
		return nil
	}
	if err := c.store.(admin.Generations).BeginGenerations(ctx, c.config.public); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: %w", c.config.public, err)
	}
	return nil
}

// canEmit returns an error if ReEmitIntents is set but the store cannot send intents again.
func (c *Consumer[Tx]) canEmit(ctx context.Context) error {
	if !c.config.ReEmitIntents {
		return nil
	}
	emitter, _ := c.store.(admin.Emitter)
	if _, err := emitter.Emit(ctx, admin.EmitOptions{}); err != nil {
		return fmt.Errorf("semel: consumer %q: ReEmitIntents is set: %w", c.config.Name, err)
	}
	return nil
}
