package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel/memstore"
)

func TestEachRequestTakesEffectOnce(t *testing.T) {
	orders, company := memstore.New(), &books{receipts: map[string]string{}}
	api, err := routes(orders, memstore.NewKeys(), company)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	var told strings.Builder
	for range 3 {
		for _, path := range []string{"/orders", "/charges"} {
			if err := post(&told, server.URL, path, "k-1", "tea"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := string(orders.Get("orders")); n != "1" || len(company.receipts) != 1 || company.calls != 2 {
		t.Errorf("%s orders, %d charges, %d calls", n, len(company.receipts), company.calls)
	}
	want := `POST /orders  k-1 tea     201 Created
POST /charges k-1 tea     502 Bad Gateway
POST /orders  k-1 tea     201 Created, replayed
POST /charges k-1 tea     201 Created
POST /orders  k-1 tea     201 Created, replayed
POST /charges k-1 tea     201 Created, replayed
`
	if told.String() != want {
		t.Errorf("it told\n%s", &told)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/idempotency", nil))
	if !strings.Contains(w.Body.String(), "Idempotent-Replayed") {
		t.Errorf("its contract is %s", w.Body)
	}
}
