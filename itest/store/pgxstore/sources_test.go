package pgxstore

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

func TestRoundTripsOfManySources(t *testing.T) {
	t.Run("law_11_messages_of_many_new_sources_take_as_many_round_trips_as_those_of_one", func(t *testing.T) {
		proxy := pgproxy.Start(t, services.Postgres(t))
		pool := openPool(t, proxy.DSN(), func(c *pgxpool.Config) { c.MaxConns = 2 })
		h := newFixture(t, pool)
		c, err := consumer.New(h.Store, func(context.Context, pgx.Tx, *semel.Message) error { return nil },
			consumer.Config{Name: "billing", Identity: identity.CloudEvents(), Strategy: consumer.StrategyInbox, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		accept := func(batch string, n, sources int) int {
			var messages []*semel.Message
			for i := range n {
				messages = append(messages, &semel.Message{Attributes: semel.Attributes{ID: fmt.Sprint(batch, i), Source: fmt.Sprintf("/%s/%d", batch, i%sources)}})
			}
			proxy.ResetCounts()
			if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := c.Accept(t.Context(), tx, messages...)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return proxy.Counts().RoundTrips
		}
		for _, first := range []string{"a", "b", "c"} { // the first deliveries prepare the statements
			accept(first, 200, 2)
		}
		one, many := accept("one", 200, 1), accept("many", 200, 200)
		if one != many {
			t.Errorf("200 messages of one new source took %d round trips, of 200 new sources %d", one, many)
		}
	})
}
