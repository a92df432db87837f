// Package sqlstore stores markers, inbox rows and positions in a database through database/sql, in the same
// transactions as the handlers' effects.
//
// The guarantee: for each identity (consumer, source, id), either the effects of exactly one handler run are committed
// together with the marker of the message, or no effects are committed. The guarantee holds through crashes, lost
// connections and several processes on one database, as long as the database keeps committed data. The guarantee does
// not cover effects of a handler outside of its *sql.Tx.
//
// A handler must not commit or roll back its transaction. If the handler sends COMMIT, the COMMIT fails and the batch
// is rolled back. In SQLite, the commit also fails after a ROLLBACK of the handler, because the connection's commit
// hook rejects every commit except the commit of the store itself. In PostgreSQL, statements that a handler sends after
// its own ROLLBACK take effect without a marker, because the store cannot intercept statements between a *sql.Tx and
// its driver. No other handler runs in the rolled-back transaction. Package pgxstore rejects the ROLLBACK.
//
// # PostgreSQL
//
// A batch of n new messages takes n×h + 4 round trips if a handler uses h statements. Further round trips are
// needed in these cases:
//
//   - 1 if a message was processed before; 5 in total if all messages were processed before
//   - 1 to remove markers
//   - 1 for each inbox row, or 2 if the row's state differs from the outcome in its marker
//   - 1 with store.TxOptions.Serial
//
// One statement writes settings, guard and markers. pgx prepares a statement when a connection first needs it,
// and pings a connection that was idle for a second: each of these takes one more round trip.
//
// A batch holds one connection of the pool from Begin until Commit or Rollback. Calls of Scope, and calls that
// read or write positions, rows and audit records, hold one connection while they run. So a consumer needs one
// connection for each worker, and one more. A handler that needs a second connection of the same pool waits
// for that connection until the handler's context ends. If the pool is exhausted, the handler gets the error
// of its context, so no deadlock lasts longer than the timeout.
//
// Every timeout is set within the transaction, so that a pooler in transaction mode, such as PgBouncer, works. A pooler
// in transaction mode does not support named prepared statements: with pgx, add default_query_exec_mode=exec or
// =cache_describe to the connection string. MarkLock limits the waits for other deliveries of the same messages and for
// other rows. Only the context of Begin limits the wait for a lock on the whole table of markers, for example the lock
// of a migration. The defaults of store.TxOptions are: MarkLock and EffectLock 10 s, Idle one minute, Statement the
// server's own limit. A Statement below one second is raised to one second, because the limit also applies to the
// store's own statements; the context of the handler still ends at the exact time. Answer is not used.
//
// The store must know whether a handler committed, rolled back, or swallowed an error. If the driver shows the state of
// the transaction (pgx's stdlib does), the store sees this state at once. With other drivers, the store asks the
// database after each handler, which takes one more round trip for each message. The swallowed error itself is unknown,
// because a *sql.Tx passes the error only to the handler. So with other drivers, a swallowed error counts as an attempt
// of the message, even after a deadlock. With a driver other than pgx, killing a batch also closes the connection while
// a statement runs.
//
// Errors are classified by SQLSTATE. Errors of constraints, types, syntax and privileges, and RAISE without an
// ERRCODE (P0001), are permanent. A trigger that wants its message to run again raises ERRCODE '40001', which
// is not counted as an attempt.
//
// # SQLite
//
// A batch of n new messages runs n×h + 5 statements, including BEGIN and COMMIT, if a handler uses h
// statements. Further statements are needed in these cases:
//
//   - 1 if a message was processed before; 6 in total if all messages were processed before
//   - 1 to remove markers
//   - 1 for each inbox row, or 2 if the row's state differs from the outcome in its marker
//   - 1 each time the consumer checks that a handler left the transaction open
//
// A list of more than 500 markers takes one statement for each 500. The consumer checks the transaction because SQLite
// rolls back the whole transaction after some errors that a handler may swallow (a full disk, an interrupted statement,
// insert or rollback). Later statements would then be committed without a marker. No statement of SQLite is a round
// trip, because SQLite runs in the process.
package sqlstore

import (
	"database/sql"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

var (
	_ store.TxStore[*sql.Tx]  = (*Store)(nil)
	_ store.CallerTx[*sql.Tx] = (*Store)(nil)
	_ store.Inbox             = (*Store)(nil)
	_ store.Leases            = (*Store)(nil)
	_ admin.Requeuer          = (*Store)(nil)
	_ admin.Resolver          = (*Store)(nil)
	_ source.PositionStore    = (*Store)(nil)
	_ admin.Controls          = (*Store)(nil)
	_ laneoffset.Store        = (*Store)(nil)
	_ admin.SchemaChecker     = (*Store)(nil)
	_ admin.Eraser            = (*Store)(nil)
	_ admin.RequestStore      = (*Store)(nil)
	_ admin.Previewer         = (*Store)(nil)
	_ admin.Interner          = (*Store)(nil)
	_ admin.Editor            = (*Store)(nil)
	_ admin.Emitter           = (*Store)(nil)
	_ admin.Replays           = (*Store)(nil)
	_ admin.Results[*sql.Tx]  = (*Store)(nil)
)
