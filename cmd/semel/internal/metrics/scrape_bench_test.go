package metrics

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
)

// BenchmarkAScrape is what answering Prometheus costs the process, without the network, for so
// many consumers over a store.
func BenchmarkAScrape(b *testing.B) {
	for _, consumers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(consumers, "_consumers"), func(b *testing.B) {
			var names []string
			rows := map[string]sqlstore.SampledRows{}
			for n := range consumers {
				names = append(names, fmt.Sprint("consumer-", n))
				rows[names[n]] = sqlstore.SampledRows{Rows: 100, Oldest: time.Hour}
			}
			s, err := Open(Options{Address: "127.0.0.1:0", Loopback: true, Consumers: names, Logger: slog.New(slog.DiscardHandler)},
				[]Store{&shelf{rows: sqlstore.Sampled{Consumers: rows}}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(s.Close)
			s.samplers[0].sample(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+PathMetrics, nil)
				r.Header.Set("Accept-Encoding", "gzip")
				if s.server.Handler.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
