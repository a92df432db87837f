package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
)

// scrapable returns a server for the given number of running consumers, which share one store.
func scrapable(b *testing.B, consumers int) *Server {
	b.Helper()
	var names []string
	rows, sources, running := map[string]sqlstore.SampledRows{}, map[string]string{}, map[string]Consumer{}
	for n := range consumers {
		name := fmt.Sprint("consumer-", n)
		names, rows[name], sources[name], running[name] = append(names, name), sqlstore.SampledRows{Rows: 100, Oldest: time.Hour}, "kafka", &idleConsumer{}
	}
	s, err := Open(Options{Address: "127.0.0.1:0", Loopback: true, Consumers: names, Sources: sources, Logger: slog.New(slog.DiscardHandler)},
		[]Store{&fakeStore{rows: sqlstore.Sampled{Consumers: rows}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	s.Started(running)
	s.samplers[0].sample(b.Context())
	return s
}

// BenchmarkAScrape measures the time and size of one scrape, without the network.
func BenchmarkAScrape(b *testing.B) {
	for _, consumers := range []int{1, 4, 100} {
		b.Run(fmt.Sprint(consumers, "_consumers"), func(b *testing.B) {
			s := scrapable(b, consumers)
			_, text := get(s, PathMetrics)
			series := len(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") }))
			b.ReportAllocs()
			for b.Loop() {
				if code, _ := get(s, PathMetrics, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }); code != http.StatusOK {
					b.Fatal(code)
				}
			}
			b.ReportMetric(float64(series), "series")
			b.ReportMetric(float64(len(text)), "bytes")
		})
	}
}

// BenchmarkConcurrentScrapes measures how long concurrent clients wait for the complete metrics of four
// consumers. The clients in the benchmark do not parse the response. For comparison, the benchmark also
// requests /livez, whose time is spent mostly on the machine and the network.
func BenchmarkConcurrentScrapes(b *testing.B) {
	for name, of := range map[string]struct {
		path     string
		scrapers int
	}{"a_bare_status": {PathLive, 1}, "1_scraper": {PathMetrics, 1}, "20_scrapers": {PathMetrics, 20}} {
		b.Run(name, func(b *testing.B) {
			url := "http://" + scrapable(b, 4).Address() + of.path
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: of.scrapers, DisableCompression: true}}
			took := make([]time.Duration, b.N)
			var group sync.WaitGroup
			for first := range of.scrapers {
				group.Go(func() {
					for i := first; i < b.N; i += of.scrapers {
						took[i] = timeRequest(b, client, url)
					}
				})
			}
			group.Wait()
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
		})
	}
}

func timeRequest(b *testing.B, client *http.Client, url string) time.Duration {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return 0
	}
	r.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	answer, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Errorf("%d: %v", answer.StatusCode, err)
	}
	return time.Since(began)
}
