package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/machine"
)

// Retry runs the handler for a row in one transaction with the row's
// completion. It returns nil when the effect is committed; semel.ErrChanged,
// semel.ErrConflict or semel.ErrState when nothing was done; the handler's error when it
// failed again, which is recorded on the row with the act unless ctx or the
// store ended it. A handler that answers Duplicate completes the row, one that
// answers Discard closes it; both without an effect. Refused is the row of a
// message without usable identity, because nothing could keep its effect apart
// from a good copy's, and that of one which could not be read, was too large or
// was another consumer's.
func (c *Consumer[Tx]) Retry(ctx context.Context, row contract.StoredRow, a contract.Act) error {
	retrier, ok := c.store.(contract.RowRetrier[Tx])
	inbox, shows := c.store.(contract.Inbox)
	if !ok || !shows {
		return fmt.Errorf("semel: the store keeps no rows: %w", semel.ErrUnsupported)
	}
	if row.Message == nil || row.Key.Consumer != c.config.Name {
		return fmt.Errorf("semel: row %d is not of consumer %q or was read without its message: %w", row.Number, c.config.Name, semel.ErrState)
	}
	if row.Surrogate && (c.config.Identity != nil || row.Reason == semel.ReasonMalformed || row.Reason == semel.ReasonTooLarge || row.Reason == semel.ReasonForeign) {
		return fmt.Errorf("semel: row %d %s: %w", row.Number, neverProcessed(row.Reason), semel.ErrState)
	}
	batch, err := retrier.BeginRow(ctx, c.config.retryOptions(), row.Number, row.Revision, a)
	if err != nil {
		return err
	}
	class, err := c.retryIn(ctx, batch, row)
	if err == nil || ctx.Err() != nil {
		return err
	}
	var decided *semel.HandlerError
	if errors.As(err, &decided) {
		switch decided.Decision {
		case semel.DecideDuplicate:
			return c.complete(ctx, retrier, row, a)
		case semel.DecideDiscard:
			return inbox.Discard(ctx, row.Number, row.Revision, a)
		}
	}
	switch class {
	case contract.ClassContended, contract.ClassDown: // nobody's attempt
		return err
	}
	if failed := inbox.FailRetry(ctx, row.Number, row.Revision, errorText(err), a); failed != nil {
		err = errors.Join(err, fmt.Errorf("semel: the failed retry could not be recorded: %w", failed))
	}
	return err
}

// neverProcessed says why the row of a message that no handler may get has to
// stay as it is, and what to do.
func neverProcessed(why semel.Reason) string {
	switch why {
	case semel.ReasonForeign:
		return "is of a message that Config.Only leaves to other consumers (" + string(why) + ") and is never processed; discard it, or change Only and let the producer send it again"
	case semel.ReasonTooLarge:
		return "has only the beginning of its message (" + string(why) + ") and is never processed; discard it, and let the producer send a smaller one, or raise Config.MaxBody or the source's limit and let it be sent again"
	case semel.ReasonMalformed:
		return "is of a message that could not be read (" + string(why) + ") and is never processed; discard it, and let the producer send a good one"
	}
	return "has no usable identity (" + string(why) + ") and is never processed; discard it, and let the producer send it again"
}

// retryOptions are the settings of a retry's transaction. A person waits for it,
// so that locks are waited for as long as the store does by itself.
func (c *Config) retryOptions() contract.TxOptions {
	o := c.txOptions(false)
	o.MarkLock, o.EffectLock = 0, 0
	return o
}

// complete completes a row whose effect is there already.
func (c *Consumer[Tx]) complete(ctx context.Context, retrier contract.RowRetrier[Tx], row contract.StoredRow, a contract.Act) error {
	batch, err := retrier.BeginRow(ctx, c.config.retryOptions(), row.Number, row.Revision, a)
	if err != nil {
		return err
	}
	_, err = c.commitRetry(ctx, batch)
	return err
}

// retryIn runs the handler in an open batch and ends the batch. With an error it
// says of which class.
func (c *Consumer[Tx]) retryIn(ctx context.Context, batch contract.Batch[Tx], row contract.StoredRow) (contract.Class, error) {
	copied := *row.Message
	m := &copied
	m.Identity, m.Attempt = row.Key, row.Attempts+1
	f := &flight[Tx]{batch: batch}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	defer f.cancel(nil)
	f.watch.start(c.config.Timeout, f.cancel, func(*machine.Item) { batch.Kill() })
	f.watch.begin(nil)
	returned := false
	defer func() {
		if !returned { // the handler ended this goroutine
			f.watch.end()
			batch.Kill()
		}
	}()
	err := f.call(func() error {
		if c.handler.all != nil {
			return c.handler.all(f.ctx, batch.Tx(contract.All), []*semel.Message{m})
		}
		return c.handler.one(f.ctx, batch.Tx(0), m)
	})
	returned = true
	f.watch.end()
	if broken, ok := batch.(contract.Broken); err == nil && ok && broken.Broken() {
		err = swallowed(broken)
	}
	if err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.CommitTimeout)
		defer cancel()
		class := classifyHandler(ending, c.store, batch, err)
		batch.Rollback(ending)
		return class, err
	}
	return c.commitRetry(ctx, batch)
}

func (c *Consumer[Tx]) commitRetry(ctx context.Context, batch contract.Batch[Tx]) (contract.Class, error) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.commitTimeout(batch))
	defer cancel()
	switch result := c.commitWatched(ending, batch); result.Outcome {
	case contract.Committed:
		return 0, nil
	case contract.CommitUnknown:
		return contract.ClassDown, fmt.Errorf("semel: whether the retry was committed is unknown; look at the row: %w", result.Err)
	default:
		return result.Class, result.Err
	}
}
