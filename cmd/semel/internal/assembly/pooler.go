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

// withoutNames has the connections of a pool prepare no named statements if a pooler stands
// between this process and the server. A pooler in transaction mode gives each transaction
// another connection of the server, which does not know the names, or has others of them.
// The first connection finds out: a pooler tells each client a process id of its own, and not
// the one of the server's process. Until a server has answered, each connection asks.
func withoutNames(config *pgxpool.Config, log *slog.Logger) {
	var direct, pooled atomic.Bool
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if !direct.Load() && !pooled.Load() {
			switch through, err := throughPooler(ctx, &c.Config); {
			case err != nil: // the connection itself fails, and says so
			case !through:
				direct.Store(true)
			case pooled.CompareAndSwap(false, true) && log != nil:
				log.Info("a pooler stands before the database: statements are sent without names (default_query_exec_mode=exec); "+
					"set default_query_exec_mode in the url to choose", "host", c.Host, "port", c.Port)
			}
		}
		if pooled.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
}

// throughPooler reports whether the process that answers has another id than the one that the
// connection was told.
func throughPooler(ctx context.Context, c *pgconn.Config) (bool, error) {
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	results, err := conn.Exec(ctx, "select pg_catalog.pg_backend_pid() = "+strconv.Itoa(int(int32(conn.PID())))+"::int4").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false, err
	}
	return string(results[0].Rows[0][0]) != "t", nil
}
