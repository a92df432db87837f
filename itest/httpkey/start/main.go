// Command start is the API of docs/http.md: a protected endpoint on PostgreSQL.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/pgxstore"
)

func main() {
	if err := serve(context.Background(), os.Getenv("DATABASE_URL"), os.Getenv("LISTEN")); err != nil {
		log.Fatal(err)
	}
}

// serve serves the API until it fails.
func serve(ctx context.Context, dsn, listen string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "create table if not exists orders (number bigserial primary key, account text, item text)"); err != nil {
		return err
	}
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	mux, err := protected(ctx, pool)
	if err != nil {
		return err
	}
	return http.ListenAndServe(listen, mux)
}

// protected is the whole of what protects an endpoint.
func protected(ctx context.Context, pool *pgxpool.Pool) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return nil, err
	}
	guard, err := httpkey.New(store, httpkey.Config{Name: "orders", Caller: account, Keep: 72 * time.Hour})
	if err != nil {
		return nil, err
	}
	go guard.Run(ctx, report)
	mux.Handle("POST /orders", guard.ProtectFunc(order))
	return mux, nil
}

func report(err error) { log.Print(err) }

// account is who asks; behind your own authentication.
func account(r *http.Request) string { return r.Header.Get("X-Account") }

func order(w http.ResponseWriter, r *http.Request) {
	var number int64
	tx, err := httpkey.TxFrom[pgx.Tx](r.Context())
	if err == nil {
		err = tx.QueryRow(r.Context(), "insert into orders (account, item) values ($1, $2) returning number", account(r), r.FormValue("item")).Scan(&number)
	}
	if err != nil {
		http.Error(w, "the order was not placed", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]int64{"order": number})
}
