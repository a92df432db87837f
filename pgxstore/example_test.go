package pgxstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// payments is a placeholder for a source, such as one of package kafka.
var payments source.Source

func open() *pgxstore.Store {
	pool, err := pgxpool.New(context.Background(), "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// The handler of this consumer gets a pgx.Tx. The balance changes once, even if the payment is delivered
// several times.
func Example() {
	ctx := context.Background()
	store := open()
	if _, err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	consumer, err := consumer.New(store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		return pgxstore.OneRow(tx.Exec(ctx, `update accounts set balance = balance + 1 where id = $1`, m.Identity.ID))
	}, consumer.Config{Name: "billing", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		log.Fatal(err)
	}
	if err := consumer.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// The handler of this consumer queues its statements. The statements of the whole batch take one round trip.
func ExampleStore_Queued() {
	consumer, err := consumer.New(open().Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		q.ExecOne(`update accounts set balance = balance + 1 where id = $1`, m.Identity.ID)
		return nil
	}, consumer.Config{Name: "billing", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		log.Fatal(err)
	}
	if err := consumer.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// If a deployment creates the tables, the process only checks them.
func ExampleStore_Check() {
	switch err := open().Check(context.Background()); {
	case errors.Is(err, semel.ErrSchema):
		log.Fatal(err) // the text names each fault and its remedy
	case err != nil:
		log.Fatalf("the database does not answer: %v", err)
	}
}

func ExampleStore_Status() {
	migrations, err := open().Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range migrations {
		fmt.Println(m, "applied:", !m.AppliedAt.IsZero())
	}
}

// The example lists the parked messages, and discards one message.
func ExampleStore_Rows() {
	ctx, st := context.Background(), open()
	rows, err := st.Rows(ctx, store.RowFilter{Consumer: "billing", States: []store.RowState{store.StateParked}})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rows {
		fmt.Println(r.Number, r.Key.ID, r.Reason, r.LastError)
	}
	if len(rows) > 0 {
		err = errors.Join(st.Discard(ctx, store.Act{Verb: "discard", Who: "ada", Why: "paid by hand"}, rows[0].Seen())...)
	}
	if errors.Is(err, semel.ErrChanged) {
		fmt.Println("somebody was faster: look again")
	}
}

// The example prints the SQL of the tables, for use with another tool. No connection is needed.
func ExampleStore_Print() {
	var text bytes.Buffer
	if err := open().Print(&text); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "create table") {
			fmt.Println(strings.TrimSuffix(line, " (\n"))
		}
	}
	// Output:
	// create table "public".semel_scopes
	// create table "public".semel_markers
	// create table "public".semel_results
	// create table "public".semel_guard_end
	// create table "public".semel_guard
	// create table "public".semel_inbox
	// create table "public".semel_edits
	// create table "public".semel_streams
	// create table "public".semel_lines
	// create table "public".semel_acts
	// create table "public".semel_seals
	// create table "public".semel_seal_end
	// create table "public".semel_positions
	// create table "public".semel_setup
	// create table "public".semel_controls
	// create table "public".semel_retention
	// create table "public".semel_ages
	// create table "public".semel_dated
	// create table "public".semel_derivations
	// create table "public".semel_owners
	// create table "public".semel_generation_states
	// create table "public".semel_generation_fences
	// create table "public".semel_replays
	// create table "public".semel_keys
}

func ExampleOneRow() {
	err := pgxstore.OneRow(pgconn.NewCommandTag("UPDATE 0"), nil)
	var unmet *semel.HandlerError
	fmt.Println(errors.As(err, &unmet) && unmet.Decision == semel.DecidePreconditionFailed, err)
	// Output: true condition unmet: changed 0 rows, not 1
}
