// Package sqlstore keeps markers, inbox rows and positions in a database that
// database/sql reaches, in the same transactions as the handlers' effects.
//
// The guarantee: for each identity (consumer, source, id) the effects of one
// handler run are committed, together with its marker, or none. It holds
// through crashes, lost connections and several processes on one database, as
// far as the database keeps what it has committed. It does not cover what a
// handler does outside of its *sql.Tx.
//
// A handler must not commit or roll back its transaction. Its COMMIT fails and
// nothing of the batch is left. In SQLite that is so also after its ROLLBACK:
// the connection's commit hook refuses every commit but the store's own. In
// PostgreSQL what a handler writes after a ROLLBACK that it sent as a statement
// stands alone, without its marker: nobody stands between a *sql.Tx and its
// driver. No other handler runs in that transaction any more. Package pgxstore
// refuses the statement.
//
// # PostgreSQL
//
// A batch of n fresh messages takes n×h + 4 round trips where a handler uses h
// statements; one more if any of them was marked before, 5 if all were; one
// more for what is trimmed, one for each inbox row, two if the row's state
// differs from what its mark says; one more with store.TxOptions.Serial. Settings,
// guard and marks are one statement. pgx prepares a statement when a connection
// first meets it and pings a connection that was not taken for a second: each
// is one more.
//
// A batch holds one connection of the pool from Begin to its end; Scope,
// positions, rows and acts take one while they last. So a consumer needs as
// many as it has workers, and one more. A handler that asks the same pool for a
// second one waits for it until its context ends: with a pool that is used up
// it gets that error, and no deadlock outlives its time-out.
//
// Every time-out is set in the transaction, so that a pooler by transaction
// (PgBouncer) may stand between. Such a pooler must not meet named prepared
// statements: with pgx add default_query_exec_mode=exec or =cache_describe to
// the connection string. MarkLock governs the waits for copies and other rows;
// a lock on the table of markers itself, such as a migration's, is waited for
// until the context of Begin ends. store.TxOptions that are zero mean: MarkLock and
// EffectLock 10 s, Idle one minute, Statement no limit but the server's own; a
// Statement of less than a second is a second, because a handler's context is
// exact and the store's own statements have as long. Answer is not used.
//
// With a driver whose connection shows the state of its transaction (pgx's
// stdlib) a handler that swallowed an error, committed or rolled back is named
// at once. With others the database is asked after each handler, which is one
// round trip more for each message. Which error was swallowed nobody can know, because a
// *sql.Tx tells it to the handler only: its message is charged with an attempt,
// also where it was a deadlock. Such a driver's connection is also cut under a
// statement when a batch is killed.
//
// Errors are told by their SQLSTATE. Constraints, types, syntax, rights and
// RAISE without an ERRCODE (P0001) are permanent; a trigger that wants its
// message to run again raises ERRCODE '40001', which is nobody's attempt.
//
// # SQLite
//
// Statements of a batch of n fresh messages, BEGIN and COMMIT counted: n×h + 5
// where a handler uses h statements; one more if any of them was marked before,
// 6 if all were; one more for what is trimmed and one for each inbox row, two
// if the row's state differs from what its mark says. A list of more than 500
// marks is one statement for each 500. Each time the engine asks whether a
// handler left the transaction standing is one more: SQLite takes a whole
// transaction back on some errors that a handler may swallow (a full disk, a
// statement that was cut off, insert or rollback), and what follows would stand
// without its marker. None of these is a round trip: SQLite runs in the process.
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
