package httpkey_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

// ask sends a request with a key and prints the response.
func ask(api http.Handler, key string) {
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	r.Header.Set(httpkey.Header, `"`+key+`"`)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	fmt.Printf("%d %s (replayed: %t)\n", w.Code, w.Body, w.Header().Get(httpkey.ReplayedHeader) == "true")
}

func ExampleNew() {
	store := memstore.New()
	guard, err := httpkey.New(store, httpkey.Config{Name: "orders", OneTenant: true, Keep: 72 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	api := guard.ProtectFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, err := httpkey.TxFrom[*memstore.Tx](r.Context())
		if err == nil {
			err = tx.Add("orders", 1)
		}
		if err != nil {
			http.Error(w, "no order was placed", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "placed")
	})
	ask(api, "8e03978e")
	ask(api, "8e03978e")
	fmt.Println("orders:", string(store.Get("orders")))
	// Output:
	// 201 placed (replayed: false)
	// 201 placed (replayed: true)
	// orders: 1
}

func ExampleNewLeased() {
	guard, err := httpkey.NewLeased(memstore.NewKeys(), httpkey.Config{Name: "charges", OneTenant: true, Keep: 72 * time.Hour},
		httpkey.LeaseConfig{Window: leasedkey.Always, AllowVolatile: "an example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lost := true
	api := guard.ProtectFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt, _ := httpkey.AttemptFrom(r.Context())
		fmt.Println("attempt", attempt.Number, "under", attempt.IdempotencyKey[:8], "unknown:", attempt.Unknown)
		if lost {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, "no response from the provider")
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "charged")
	})
	ask(api, "8e03978e")
	lost = false
	ask(api, "8e03978e")
	ask(api, "8e03978e")
	// Output:
	// attempt 1 under 73609278 unknown: false
	// 502 no response from the provider (replayed: false)
	// attempt 2 under 73609278 unknown: true
	// 201 charged (replayed: false)
	// 201 charged (replayed: true)
}
