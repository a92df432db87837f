package sqlstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// standing is what is known of a batch's transaction.
type standing uint8

const (
	stands standing = iota // a statement would succeed
	fails                  // the server answers, and refuses statements
	silent                 // nothing answers
)

// ClassifyHandler implements store.TxStatus. What looks like contention
// or like a store that is down is the handler's own unless the transaction is
// broken and the error has the server's code, or nothing answers. database/sql
// tells an error of a statement to the handler only, so where the driver's
// connection shows no state the server is asked with a statement.
//
// An error with one of SQLite's codes is believed: SQLite undoes a statement that
// meets a full disk, and the transaction goes on.
func (b *batch) ClassifyHandler(ctx context.Context, err error) store.Class {
	class := b.store.Classify(err)
	switch class {
	case store.ClassRetry, store.ClassPermanent:
		return class
	}
	d := b.store.dialect
	coded := d.coded(err)
	switch s := b.standing(ctx); {
	case s == silent:
		return store.ClassDown
	case coded && d.believes, s == fails && (coded || isOver(err)):
		return class
	}
	return store.ClassRetry
}

func (b *batch) standing(ctx context.Context) standing {
	if b.handle.status != nil {
		switch {
		case b.handle.closed != nil && b.handle.closed():
			return silent
		case b.handle.status() == inTransaction:
			return stands
		}
		return fails
	}
	_, err := b.tx.ExecContext(ctx, b.store.sql.Guarded)
	switch {
	case err == nil:
		return stands
	case isOver(err), b.store.dialect.coded(err):
		return fails
	}
	return silent
}
