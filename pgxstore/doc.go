// Package pgxstore keeps markers, inbox rows and positions in PostgreSQL through
// pgx, in the same transactions as the handlers' effects. It works on the tables
// of sqlstore, which may be used at the same time.
//
// The guarantee: for each identity (consumer, source, id) the effects of one
// handler run are committed, together with its marker, or none. It holds
// through crashes, lost connections, lost answers to COMMIT and several
// processes on one database, as far as the database keeps what it has
// committed. It does not cover what a handler does outside of its transaction.
//
// Open a pool, make a Store of it with New, its tables with Store.Migrate, and
// hand it to consumer.New. Store.Check and Store.Status tell whether the tables fit
// this release, Store.Rows what was set aside.
//
// There are two forms. Store gives handlers a pgx.Tx: a batch of n fresh
// messages with one statement each takes n + 2 round trips. Store.Queued gives
// them a *Queue, whose statements are sent together: 2 round trips, 3 if
// anybody reads rows. Either form takes one more where a message of the batch
// was marked before, and a batch of nothing else takes 3. A connection that
// meets a statement for the first time prepares it, which is one more.
//
// The server ends a statement of a handler after store.TxOptions.Statement: an attempt
// of the message that sent or queued it. Queued statements have as long each.
//
// A tracer of the pool's connections sees every statement once: those that are
// sent together as a batch, or as queries if it is no pgx.BatchTracer.
//
// A handler must not commit or roll back its transaction: a statement that would
// is refused before it is sent, as is everything after it, and nothing of the
// batch is left.
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
