package httpkey

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// Each request inserts one row; with leased keys, a request inserts no row. Run the benchmark with "make bench
// NAME=httpkey".
func BenchmarkARequest(b *testing.B) {
	dsn := services.Postgres(b)
	keys := openPool(b, dsn).store // openPool creates the tables
	for _, k := range []struct {
		name string
		kind kind
	}{
		{"memory", overMemory(b)},
		{"SQLite", overSQLite(b)},
		{"PostgreSQL, pgx", overPgx(b, dsn+"&pool_max_conns=8")},
		{"PostgreSQL, pgx queued", overQueue(b, dsn+"&pool_max_conns=8")},
		{"PostgreSQL, database sql", overSQL(b, dsn)},
		{"memory, leased", overKeys(b, memstore.NewKeys())},
		{"PostgreSQL, leased", overKeys(b, keys)},
		{"Redis, leased", overKeys(b, redis(b))},
	} {
		b.Run(k.name+"/without a guard", func(b *testing.B) { benchmark(b, k.kind.plain, false) })
		b.Run(k.name+"/with a new key", func(b *testing.B) { benchmark(b, k.kind.protected, false) })
		b.Run(k.name+"/a copy", func(b *testing.B) { benchmark(b, k.kind.protected, true) })
	}
}

var lastKey atomic.Int64 // number of the last key in all requests

// benchmark sends requests, as many at once as there are processors, and reports the median and the 99th
// percentile of their durations. If the parameter copies is true, each worker repeats one request.
func benchmark(b *testing.B, h http.Handler, copies bool) {
	var mutex sync.Mutex
	var all []time.Duration
	began := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		var took []time.Duration
		own := fmt.Sprint(lastKey.Add(1))
		if copies {
			timeRequest(b, h, own)
		}
		for pb.Next() {
			key := own
			if !copies {
				key = fmt.Sprint(lastKey.Add(1))
			}
			took = append(took, timeRequest(b, h, key))
		}
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, took...)
	})
	rate := float64(b.N) / time.Since(began).Seconds()
	slices.Sort(all)
	b.ReportMetric(0, "ns/op") // with concurrent requests, time divided by requests is not the time of a request
	b.ReportMetric(rate, "requests/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

// timeRequest sends a request, and returns how long it took.
func timeRequest(b *testing.B, h http.Handler, key string) time.Duration {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("tea"))
	r.Header.Set("X-Account", "a")
	r.Header.Set(httpkey.Header, `"`+key+`"`)
	w := httptest.NewRecorder()
	began := time.Now()
	h.ServeHTTP(w, r)
	took := time.Since(began)
	if w.Code != http.StatusCreated {
		b.Errorf("%d: %s", w.Code, w.Body)
	}
	return took
}

func overMemory(b *testing.B) kind {
	st := memstore.New()
	return overShop(b, newMemoryFixture(st), func(ctx context.Context) error {
		t, _, err := st.Begin(ctx, store.TxOptions{}, nil)
		if err != nil {
			return err
		}
		if err := t.Tx(store.All).Add("plain", 1); err != nil {
			return err
		}
		return t.Commit(ctx, store.Ending{}).Err
	})
}

func overSQLite(b *testing.B) kind {
	d := sqliteThat(b, "full")
	d.db.SetMaxOpenConns(8)
	turn := make(chan struct{}, 1) // one writer at a time, as in the store, because SQLite's own waiting sleeps
	return overShop(b, newSQLFixture(b, d, true, "?"), func(ctx context.Context) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		tx, err := d.db.BeginTx(ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(ctx, "insert into effects values (?)", "plain")
		}
		if err == nil {
			err = tx.Commit()
		}
		return err
	})
}

// overKeys returns handlers with leased keys to measure. The handler does nothing, because its effects would be in
// another system.
func overKeys(b *testing.B, keys keystore.Store) kind {
	return overShop(b, newLeasedFixture(keys), func(context.Context) error { return nil })
}

// overShop returns two handlers to compare: a handler with a guard of the store s, and a plain handler with the same
// effect.
func overShop(b *testing.B, s *storeFixture, plain func(context.Context) error) kind {
	g, err := s.newGuard(config(), lease())
	if s.writeEffect == nil {
		s.writeEffect = func(ctx context.Context, _ string) error { return plain(ctx) }
	}
	return kind{
		plain:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { status(w, plain(r.Context())) }),
		protected: protect(b, g, err, func(w http.ResponseWriter, r *http.Request) { status(w, s.writeEffect(r.Context(), "protected")) }),
	}
}
