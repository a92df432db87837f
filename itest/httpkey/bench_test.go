package httpkey

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/services"
)

// Each request has one insert. From the clone's folder:
//
//	scripts/services with postgres -- go test ./itest/httpkey -run xxx -bench . -cpu 4
func BenchmarkARequest(b *testing.B) {
	dsn := services.Postgres(b)
	opened(b, dsn)     // makes the tables
	var n atomic.Int64 // requests of all
	for _, k := range []struct {
		name string
		open func(testing.TB, string) kind
	}{{"pgx", overPgx}, {"pgx queued", overQueue}, {"database sql", overSQL}} {
		pair := k.open(b, dsn+"&pool_max_conns=8")
		for _, h := range []struct {
			name    string
			handler http.Handler
		}{{"without a guard", pair.plain}, {"with a new key", pair.protected}, {"with a key that was answered", pair.protected}} {
			b.Run(k.name+"/"+h.name, func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					worker := n.Add(1)
					for pb.Next() {
						key := fmt.Sprint(n.Add(1))
						if strings.HasSuffix(h.name, "answered") {
							key = fmt.Sprintf("%s of %d", k.name, worker)
						}
						r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("tea"))
						r.Header.Set("X-Account", "a")
						r.Header.Set(httpkey.Header, `"`+key+`"`)
						w := httptest.NewRecorder()
						h.handler.ServeHTTP(w, r)
						if w.Code != http.StatusCreated {
							b.Errorf("%d: %s", w.Code, w.Body)
						}
					}
				})
			})
		}
	}
}
