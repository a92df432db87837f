package pgxstore

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
)

func TestHandlersThatCallOut(t *testing.T) {
	t.Run("law_2_D3_no_transaction_is_open_while_they_run_and_each_message_is_called_for_once", func(t *testing.T) {
		pool := openPool(t, services.Postgres(t))
		h := newFixture(t, pool)
		config := consumer.Config{Name: "billing", Identity: identity.By("header:id"), Strategy: consumer.StrategyInbox, Workers: 4, Logger: slog.New(slog.DiscardHandler)}
		receiving, err := consumer.New(h.Store, func(context.Context, pgx.Tx, *semel.Message) error { return nil }, config)
		if err != nil {
			t.Fatal(err)
		}
		var messages []*semel.Message
		for i := range 40 {
			messages = append(messages, &semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Append(nil, i)}}, Body: []byte("{}")})
		}
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := receiving.Accept(t.Context(), tx, messages...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		called := make(chan string, 1000)
		opened := make(chan int, 1000)
		running, err := consumer.NewLeased(h.Store, func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
			var n int
			err := pool.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'").Scan(&n)
			opened <- n
			called <- m.Identity.ID
			return err
		}, config)
		if err == nil {
			err = running.Work(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if c := running.Counts().Inbox; c.Applied != 40 || c.Claimed != 40 {
			t.Errorf("%+v", c)
		}
		close(called)
		close(opened)
		times := map[string]int{}
		for id := range called {
			times[id]++
		}
		for n := range opened {
			if n != 0 {
				t.Errorf("%d transactions are open while a handler runs", n)
			}
		}
		if len(times) != 40 {
			t.Errorf("%v", times)
		}
		var waiting int
		if err := pool.QueryRow(t.Context(), h.inSchema("select count(*) from in.semel_markers where outcome <> 1")).Scan(&waiting); err != nil || waiting != 0 {
			t.Errorf("%d markers do not say applied: %v", waiting, err)
		}
	})
}
