// Command http-orders is an API that places orders and charges cards. Each request takes effect once,
// although clients repeat requests.
//
//	go run ./examples/http-orders
//
// An order is placed in the transaction of the request's key. A card is charged at a company, which is a function of
// this program, under a leased key. Orders and keys are stored in memory, so the example runs without a server. In
// production, pass durable stores to New and NewLeased: PostgreSQL or SQLite (sqlstore, pgxstore), or Redis
// (redisstore) for leased keys.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

// Company charges cards and remembers each key for one day.
type Company interface {
	Charge(key string) (receipt string, err error)
}

// The function routes returns the routes of the API.
func routes(orders *memstore.Store, keys *memstore.Keys, company Company) (http.Handler, error) {
	placing, err := httpkey.New(orders, httpkey.Config{Name: "orders", Caller: account, Keep: 72 * time.Hour})
	if err != nil {
		return nil, err
	}
	charging, err := httpkey.NewLeased(keys, httpkey.Config{
		Name:   "charges",
		Caller: account,
		Keep:   72 * time.Hour,   // longer than a client repeats a request
		Wait:   10 * time.Second, // how long a copy waits for the response of the first request
	}, httpkey.LeaseConfig{
		Window:        23 * time.Hour, // the company remembers a key for a day
		AllowVolatile: "an example keeps its keys in memory",
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", placing.ProtectFunc(placeOrder))
	mux.Handle("POST /charges", charging.ProtectFunc(charge(company)))
	mux.HandleFunc("GET /idempotency", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, charging.Contract().Markdown())
	})
	return mux, nil
}

// account returns the authenticated client.
func account(r *http.Request) string { return r.Header.Get("X-Account") }

// placeOrder places an order in the transaction of its request.
func placeOrder(w http.ResponseWriter, r *http.Request) {
	tx, err := httpkey.TxFrom[*memstore.Tx](r.Context())
	if err == nil {
		err = tx.Add("orders", 1)
	}
	if err != nil {
		http.Error(w, "the order was not placed", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "order placed at %v\n", time.Now().UnixNano())
}

// charge charges a card with the idempotency key of the request.
func charge(company Company) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		attempt, _ := httpkey.AttemptFrom(r.Context())
		receipt, err := company.Charge(attempt.IdempotencyKey)
		if err != nil {
			http.Error(w, "nobody knows yet", http.StatusBadGateway) // the outcome is unknown, so the client may repeat the request
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintln(w, receipt)
	}
}

// books is a company whose first response is lost.
type books struct {
	mutex    sync.Mutex // guards the following fields, because requests are concurrent
	receipts map[string]string
	calls    int
}

func (b *books) Charge(key string) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls++
	if _, known := b.receipts[key]; !known {
		b.receipts[key] = fmt.Sprintf("receipt %d", len(b.receipts)+1)
	}
	if b.calls == 1 {
		return "", io.ErrUnexpectedEOF
	}
	return b.receipts[key], nil
}

func main() {
	orders, company := memstore.New(), &books{receipts: map[string]string{}}
	api, err := routes(orders, memstore.NewKeys(), company)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	for _, q := range []struct{ path, key, body string }{
		{"/orders", "k-1", "tea"}, {"/orders", "k-1", "tea"}, {"/orders", "k-1", "coffee"},
		{"/charges", "c-1", "12.00"}, {"/charges", "c-1", "12.00"}, {"/charges", "c-1", "12.00"},
	} {
		if err := post(os.Stdout, server.URL, q.path, q.key, q.body); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%s order, %d calls, %d charge\n", orders.Get("orders"), company.calls, len(company.receipts))
}

// post sends a request and prints the response.
func post(to io.Writer, url, path, key, body string) error {
	q, err := http.NewRequest(http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("X-Account", "anna")
	q.Header.Set(httpkey.Header, `"`+key+`"`)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	replayed := ""
	if r.Header.Get(httpkey.ReplayedHeader) != "" {
		replayed = ", replayed"
	}
	_, err = fmt.Fprintf(to, "POST %-8s %s %-7s %s%s\n", path, key, body, r.Status, replayed)
	return err
}
