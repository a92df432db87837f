// Command balances adds payments from Kafka to balances in PostgreSQL. Each payment is added once. The page
// docs/guides/kafka.md shows this program.
//
//	KAFKA_BROKERS=127.0.0.1:9092 DATABASE_URL=postgres://… go run ./examples/kafka/balances
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/pgxstore"
)

// Payment is the body of a message.
type Payment struct {
	Account string
	Amount  int64
}

func main() {
	// The first signal starts a drain: messages in progress are finished, committed and acked.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL"), strings.Split(os.Getenv("KAFKA_BROKERS"), ",")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database string, brokers []string) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	const balances = `create table if not exists balances (account text primary key, balance bigint not null)`
	if _, err := store.Setup(ctx, "balances", balances); err != nil {
		return err
	}
	payments, err := kafka.New(kafka.Config{Brokers: brokers, Topics: []string{"payments"}, Group: "balances"})
	if err != nil {
		return err
	}
	billing, err := consumer.New(store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		p, err := semel.JSON[Payment](m)
		if err != nil {
			return err // an invalid body is parked, not retried
		}
		_, err = tx.Exec(ctx, `insert into balances values ($1, $2)
			on conflict (account) do update set balance = balances.balance + $2`, p.Account, p.Amount)
		return err
	}, consumer.Config{Name: "balances", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}
