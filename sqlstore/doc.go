// Package sqlstore keeps markers, inbox rows and positions in a database that
// database/sql reaches, in the same transactions as the handlers' effects.
//
// The guarantee: for each identity (consumer, source, id) the effects of one
// handler run are committed, together with its marker, or none. It holds
// through crashes, lost connections and several processes on one database, as
// far as the database keeps what it has committed. It does not cover what a
// handler does outside of its *sql.Tx.
//
// A handler must not commit or roll back its transaction. Where the database
// enforces foreign keys its COMMIT fails and nothing of the batch is left;
// elsewhere BatchLimit is 1.
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

	"github.com/semel-go/semel"
)

var (
	_ semel.TxStore[*sql.Tx]    = (*Store)(nil)
	_ semel.TxMarker[*sql.Tx]   = (*Store)(nil)
	_ semel.RowRetrier[*sql.Tx] = (*Store)(nil)
	_ semel.Inbox               = (*Store)(nil)
	_ semel.PositionStore       = (*Store)(nil)
	_ semel.SchemaChecker       = (*Store)(nil)
	_ semel.BatchLimiter        = (*Store)(nil)
)
