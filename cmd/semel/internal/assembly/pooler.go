package assembly

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// preparesNames marks connections that prepare named statements.
const preparesNames = "semel: prepares named statements"

// withoutNames has the connections of a pool prepare no named statements once a pooler stands
// between this process and the server. A pooler in transaction mode gives each transaction
// another connection of the server, which does not know the names, or has others of them.
//
// Each new connection finds out before it is used, since a pooler may be put in front during a
// run: a pooler tells each client a process id of its own, and not the one of the server's
// process. The pool then replaces all connections that prepare named statements. No statement
// fails for that, so no message is charged with an attempt.
func withoutNames(config *pgxpool.Config, log *slog.Logger) {
	var pooled atomic.Bool
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if pooled.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if c.Config().DefaultQueryExecMode == pgx.QueryExecModeExec {
			return nil
		}
		c.PgConn().CustomData()[preparesNames] = true
		through, err := throughPooler(ctx, c.PgConn())
		if err == nil && through && pooled.CompareAndSwap(false, true) && log != nil {
			log.Info("a pooler stands before the database: statements are sent without names (default_query_exec_mode=exec); "+
				"set default_query_exec_mode in the url to choose", "host", c.Config().Host, "port", c.Config().Port)
		}
		return err
	}
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return !pooled.Load() || c.PgConn().CustomData()[preparesNames] == nil, nil
	}
}

// throughPooler reports whether the process that answers has another id than the one that the
// connection was told. It sends no named statement.
func throughPooler(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	results, err := conn.Exec(ctx, "select pg_catalog.pg_backend_pid() = "+strconv.Itoa(int(int32(conn.PID())))+"::int4").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false, err
	}
	return string(results[0].Rows[0][0]) != "t", nil
}
