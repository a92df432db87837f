// Command orders-api is an API that places orders in PostgreSQL. An order is placed once, even if the client
// repeats the request.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/pgxstore"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Getenv("DATABASE_URL"), os.Getenv("LISTEN")); err != nil {
		log.Fatal(err)
	}
}

// serve serves the API until ctx ends. serve then waits for the requests in progress.
func serve(ctx context.Context, dsn, listen string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "create table if not exists orders (number bigserial primary key, account text, item text)"); err != nil {
		return err
	}
	mux := http.NewServeMux()
	guard, err := protect(ctx, pool, mux)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		guard.Run(ctx, report)
		return nil
	})
	group.Go(func() error {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err := server.Shutdown(within)
		if !guard.Drain(within) {
			err = errors.Join(err, errors.New("a handler still runs"))
		}
		return err
	})
	return group.Wait()
}

// protect returns a guard; the function contains all the code that protects an endpoint.
func protect(ctx context.Context, pool *pgxpool.Pool, mux *http.ServeMux) (*httpkey.Guard, error) {
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	guard, err := httpkey.New(store, httpkey.Config{Name: "orders", Caller: account, Keep: 72 * time.Hour})
	if err != nil {
		return nil, err
	}
	mux.Handle("POST /orders", guard.ProtectFunc(order))
	return guard, nil
}

func report(err error) { log.Print(err) }

// account returns the client. Replace account with your own authentication.
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
