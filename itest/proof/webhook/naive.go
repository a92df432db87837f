//go:build unix

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/webhook"
)

// Command is the first argument with which a program runs as the naive receiver. With this argument, the program must
// call Live with the second argument.
const Command = "webhook-naive"

// The maximum number of events that the naive receiver keeps in memory.
const waiting = 100_000

// Live listens at an address and works like many services: it verifies the request, answers, and then does the work, so
// that the provider does not wait.
func Live(address string) error {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	verifier, err := webhook.NewVerifier(webhook.Stripe(), []string{secret}, 0)
	if err != nil {
		return err
	}
	work := make(chan string, waiting)
	go write(pool, work)
	server := &http.Server{Addr: address, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			_, err = verifier.Verify(r.Header, body, time.Now())
		}
		var event struct{ ID string }
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil {
			http.Error(w, fmt.Sprint(err), http.StatusUnauthorized)
			return
		}
		work <- event.ID
		w.WriteHeader(http.StatusOK)
	})}
	return server.ListenAndServe()
}

// The interval at which the naive receiver writes its events to the database.
const often = 100 * time.Millisecond

func write(pool *pgxpool.Pool, work <-chan string) {
	for range time.Tick(often) {
		ids := make([]string, len(work))
		for i := range ids {
			ids[i] = <-work
		}
		for len(ids) > 0 { // retry until the database is back, so that only a kill loses events
			if _, err := pool.Exec(context.Background(), "insert into naive_effects select unnest($1::text[])", ids); err == nil {
				break
			}
			processes.Pause(context.Background(), often)
		}
	}
}
