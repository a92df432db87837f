package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Accept receives messages into the store's inbox in a transaction that the caller has opened. Accept is for webhooks,
// outboxes and jobs of your own. Accept needs a store that implements store.CallerTx. When tx commits, the messages
// wait in the inbox and the consumer processes them. For a new message, the returned Verdict is Fresh. Any other
// Verdict means that the same message was received before (Verdict.Was is the recorded result), or that the message
// conflicts with a received message. Confirm the receipt to the sender only after tx has committed.
//
// After an error the caller must roll tx back. A message without a usable identity gives an *identity.Error before
// anything is written. A message that is older than the retention gives semel.ErrOld.
func (c *Consumer[Tx]) Accept(ctx context.Context, tx Tx, messages ...*semel.Message) ([]store.Verdict, error) {
	receiver, ok := c.store.(store.CallerTx[Tx])
	if !ok {
		return nil, fmt.Errorf("semel: the store cannot receive messages in your transaction: %w", semel.ErrUnsupported)
	}
	if !c.config.rows {
		return nil, fmt.Errorf("semel: consumer %q: the store has no inbox (store.Inbox) in which an accepted message could wait: %w", c.config.Name, semel.ErrUnsupported)
	}
	if err := c.config.ownTransactions(); err != nil {
		return nil, err
	}
	if !c.config.Strategy.marks() {
		return nil, fmt.Errorf("semel: consumer %q writes no markers, and only what has one can wait in the inbox; use StrategyInbox: %w", c.config.Name, semel.ErrUnsupported)
	}
	if err := c.deriveOnce(ctx); err != nil {
		return nil, err
	}
	read, err := c.readAll(ctx, messages)
	if err != nil {
		return nil, err
	}
	marks := make([]store.Mark, len(messages))
	kept := make([]*semel.Message, len(messages))
	for i, p := range read {
		mark, err := c.markIn(ctx, tx, p, store.Waiting)
		if err != nil {
			return nil, err
		}
		mark.Version, mark.Line = p.VersionIn(c.config.versionStart()), c.config.lines().Name(nil, p)
		marks[i], kept[i] = mark, &p.Message
	}
	verdicts, err := receiver.ReceiveIn(ctx, tx, marks, kept, reasonname.None)
	if err == nil {
		err = c.rejectExpired(marks, verdicts)
	}
	return verdicts, err
}

// readAll reads messages that will be received. If the store does not look up the numbers of sources in the
// marking transaction, readAll looks up these numbers in advance.
func (c *Consumer[Tx]) readAll(ctx context.Context, messages []*semel.Message) ([]*delivery.Delivery, error) {
	all := make([]*delivery.Delivery, len(messages))
	var unknown []scopes.Of
	for i, m := range messages {
		if m == nil {
			return nil, fmt.Errorf("semel: message %d is nil; nothing was received", i)
		}
		p := delivery.Read(&c.config.rules, &source.Delivery{Message: m, Before: source.Unknown})
		if r := p.Item.Refused; r != nil {
			return nil, &identity.Error{Reason: r.Reason, Detail: fmt.Sprintf("message %d: %v; nothing was received", i, r.Why)}
		}
		all[i], unknown = p, engine.AddScopes(unknown, &p.Item)
	}
	if c.scopes.InTransaction() {
		return all, nil
	}
	return all, c.scopes.Know(ctx, unknown)
}

// rejectExpired returns an error if a message is older than the retention. The caller must then roll the transaction
// back, because the rollback removes the marker of the old message.
func (c *Consumer[Tx]) rejectExpired(marks []store.Mark, verdicts []store.Verdict) error {
	c.config.retention.JudgeTimes(marks, verdicts)
	for i, v := range verdicts {
		if v.Kind == store.Old {
			return fmt.Errorf("semel: message %d: %w", i, semel.ErrOld)
		}
	}
	return nil
}

// markIn returns the marker of a message for a transaction of the caller.
func (c *Consumer[Tx]) markIn(ctx context.Context, tx Tx, p *delivery.Delivery, as store.Outcome) (store.Mark, error) {
	it := &p.Item
	m := store.Mark{Consumer: c.config.Name, Source: it.Source, ID: []byte(it.Identity), Fingerprint: it.Print, As: as, Age: c.config.retention.AgeOf(p)}
	var err error
	if it.Former != nil {
		m.Previous = &store.Mark{ID: []byte(it.Former.Identity), Strict: !c.config.PreviousIdentity.TrustUnfingerprinted}
		if m.Previous.Scope, err = c.scopes.NumberIn(ctx, tx, scopes.Of{Source: it.Former.Source, Previous: true}); err != nil {
			return m, err
		}
	}
	m.Scope, err = c.scopes.NumberIn(ctx, tx, scopes.Of{Source: it.Source})
	return m, err
}
