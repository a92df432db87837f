package pgxstore

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store"
)

// mostHeard is how many errors of the server a batch remembers: those of
// savepoints too, which a handler may return later.
const mostHeard = 16

// hear remembers an error of the server.
func (b *batch) hear(err error) {
	server := serverError(err)
	if server == nil || slices.Contains(b.heard, server) {
		return
	}
	if len(b.heard) == mostHeard {
		b.heard = slices.Delete(b.heard, 0, 1)
	}
	b.heard = append(b.heard, server)
}

// ClassifyHandler implements store.TxStatus. The batch hears every
// error of its own statements, so an error of another server, of a provider or of
// another transaction is the handler's own, whatever it looks like.
func (b *batch) ClassifyHandler(_ context.Context, err error) store.Class {
	state := b.state()
	for _, server := range slices.Backward(b.heard) {
		if errors.Is(err, server) {
			return b.store.Classify(server)
		}
	}
	switch {
	case b.brokenBy != nil:
		return b.classifyBroken(err)
	case errors.Is(err, errEnded), errors.Is(err, errBusy):
		return store.ClassPermanent
	case errors.Is(err, pgx.ErrTxClosed) && (b.ends || state != nil):
		return store.ClassAborted
	}
	return b.classifyUnheard(err)
}

// classifyUnheard judges an error while the transaction was broken by something
// that the batch did not hear, on the connection itself beside the pgx.Tx.
func (b *batch) classifyUnheard(err error) store.Class {
	switch {
	case code(err) != "" && b.pg.TxStatus() == txFailed:
		return b.store.Classify(err)
	case b.pg.IsClosed() && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return store.ClassDown
	}
	return store.ClassRetry
}

// classifyBroken judges an error beside the one that broke the transaction.
// Contention and a lost connection speak for the batch also where the handler
// returned something else.
func (b *batch) classifyBroken(err error) store.Class {
	class := b.store.Classify(b.brokenBy)
	switch {
	case class == store.ClassContended, class == store.ClassDown, errors.Is(err, b.brokenBy):
		return class
	case errors.Is(err, pgx.ErrTxClosed) && b.state() != nil:
		return store.ClassAborted
	}
	return store.ClassRetry
}
