// Package pgxstore stores markers, inbox rows and positions in PostgreSQL through pgx, in the same
// transactions as the handlers' effects. The package uses the tables of sqlstore; both packages can be used at
// the same time.
//
// The guarantee: for each identity (consumer, source, id), either the effects of exactly one handler run are committed
// together with the marker of the message, or no effects are committed. The guarantee holds through crashes, lost
// connections, lost answers to COMMIT and several processes on one database, as long as the database keeps committed
// data. The guarantee does not cover effects of a handler outside of its transaction.
//
// Open a pool, create a Store with New, create its tables with Store.Migrate, and pass the Store to
// consumer.New. Store.Check and Store.Status report whether the tables fit this release. Store.Rows lists
// parked messages and other inbox rows.
//
// Handlers can write in two ways. Store gives handlers a pgx.Tx: a batch of n new messages with one statement each
// takes n + 2 round trips. Store.Queued gives handlers a *Queue, whose statements are sent together: a batch takes 2
// round trips, or 3 if a callback reads rows. With Store and with Store.Queued, a batch takes one round trip more if
// one of its messages was processed before. A batch whose messages were all processed before takes 3 round trips. A
// connection prepares each statement when it first needs the statement, which takes one more round trip.
//
// The server cancels a statement of a handler after the time store.TxOptions.Statement. A cancelled statement counts as
// an attempt of the message that sent or queued the statement. Each queued statement has its own limit.
//
// A tracer of the pool's connections gets every statement once. Statements that are sent together are reported
// as a batch, or as queries if the tracer is not a pgx.BatchTracer.
//
// A handler must not commit or roll back its transaction. A statement that would end the transaction is rejected before
// it is sent. All later statements are also rejected, and the batch is rolled back.
package pgxstore

import (
	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

var (
	_ store.TxStore[pgx.Tx]  = (*Store)(nil)
	_ store.CallerTx[pgx.Tx] = (*Store)(nil)
	_ store.Inbox            = (*Store)(nil)
	_ source.PositionStore   = (*Store)(nil)
	_ admin.Controls         = (*Store)(nil)
	_ laneoffset.Store       = (*Store)(nil)
	_ admin.Auditor          = (*Store)(nil)
	_ admin.SchemaChecker    = (*Store)(nil)

	_ store.TxStore[*Queue] = (*QueuedStore)(nil)
	_ store.Inbox           = (*QueuedStore)(nil)
	_ source.PositionStore  = (*QueuedStore)(nil)
	_ admin.Controls        = (*QueuedStore)(nil)
	_ laneoffset.Store      = (*QueuedStore)(nil)
	_ admin.Auditor         = (*QueuedStore)(nil)
	_ admin.SchemaChecker   = (*QueuedStore)(nil)
)
