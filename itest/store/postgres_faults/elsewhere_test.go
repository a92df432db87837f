package postgresfaults

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// elsewhere contains errors of a handler that look like errors of the consumer's own store.
var elsewhere = map[string]func(ctx context.Context, other *sql.DB) error{
	"end":      func(context.Context, *sql.DB) error { return fmt.Errorf("reading the body: %w", io.EOF) },
	"cut":      func(context.Context, *sql.DB) error { return io.ErrUnexpectedEOF },
	"over":     func(context.Context, *sql.DB) error { return sql.ErrTxDone },
	"made":     func(context.Context, *sql.DB) error { return &pgconn.PgError{Code: "57P01", Message: "elsewhere"} },
	"deadlock": func(context.Context, *sql.DB) error { return &pgconn.PgError{Code: "40P01", Message: "elsewhere"} },
	"provider": func(ctx context.Context, _ *sql.DB) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	},
	"database": func(ctx context.Context, other *sql.DB) error {
		_, err := other.ExecContext(ctx, "select pg_terminate_backend(pg_backend_pid())")
		return err
	},
}

func TestAHandlersErrorsFromElsewhere(t *testing.T) {
	t.Run("trap_T84_are_attempts_of_their_message_and_stop_nobody", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t))
			other := look(t, dsn)
			w := begin(t, settings{driver: driver, dsn: dsn, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Retry.MaxAttempts = 2
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := workload.Effect("here")(ctx, exec, m); err != nil {
					return err
				}
				if fails := elsewhere[m.Identity.ID]; fails != nil {
					return fails(ctx, other)
				}
				if m.Identity.ID == "permanent" {
					return semel.Permanent(io.EOF)
				}
				return nil
			}})
			bad := []*semel.Message{message("permanent", `{}`)}
			for id := range elsewhere {
				bad = append(bad, message(id, `{}`))
			}
			deliverAround(t, w, bad...)
			w.waitParked("permanent", "permanent failure", "EOF")
			for id := range elsewhere {
				w.waitParked(id, "attempts exhausted", "")
			}
			if n := w.countEvents(semel.EventNotReady, "") + w.countEvents(eventkind.Contended, ""); n != 0 {
				t.Errorf("told %d times that the store does not work, or contention", n)
			}
		})
	})
}
