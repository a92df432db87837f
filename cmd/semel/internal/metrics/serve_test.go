package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// idleConsumer is a consumer that does nothing.
type idleConsumer struct {
	counts           semel.Counts
	load             measure.Load
	notReady, notYet string
	down             time.Time
}

func (s *idleConsumer) Counts() semel.Counts  { return s.counts }
func (s *idleConsumer) Load() measure.Load    { return s.load }
func (s *idleConsumer) Ready() (bool, string) { return s.notReady == "", s.notReady }
func (s *idleConsumer) Alive() (bool, string) { return s.notYet == "", s.notYet }
func (s *idleConsumer) StoreDown() (time.Time, string) {
	if s.down.IsZero() {
		return s.down, ""
	}
	return s.down, "store: " + s.notReady
}
func (s *idleConsumer) SourceKind() string { return "kafka" }
func (s *idleConsumer) Lanes() *Lanes      { return &Lanes{Behind: 7, HeldUp: 1} }
func (s *idleConsumer) Requests() *Requests {
	return &Requests{By: map[string]uint64{"received": 5, "forged": 2}, EqualBodies: 1}
}

// fakeStore is a store that returns values that a test sets.
type fakeStore struct {
	mutex sync.Mutex
	down  error // guarded by mutex
	waits chan struct{}
	rows  sqlstore.Sampled
}

func (s *fakeStore) Name() string { return "shop" }
func (s *fakeStore) SampleRows(ctx context.Context, state store.RowState) (sqlstore.Sampled, error) {
	if s.waits != nil {
		select {
		case <-s.waits:
		case <-ctx.Done():
			return sqlstore.Sampled{}, ctx.Err()
		}
	}
	if state != store.StateParked {
		return sqlstore.Sampled{}, s.currentError()
	}
	return s.rows, s.currentError()
}
func (s *fakeStore) SampleReaping(context.Context) (map[string]sqlstore.SampledReaping, error) {
	return map[string]sqlstore.SampledReaping{"billing": {Progress: time.Minute, Lag: time.Hour, Walked: true}}, s.currentError()
}
func (s *fakeStore) SampleReplays(context.Context) (map[string]int64, error) {
	return map[string]int64{"billing": 1, "billing@2": 1, "a stranger's": 1}, s.currentError()
}
func (s *fakeStore) SampleTables(context.Context) (map[string]sqlstore.SampledTable, error) {
	return map[string]sqlstore.SampledTable{"markers": {Rows: 10_000_000}}, s.currentError()
}
func (s *fakeStore) SampleOutcomes(context.Context) (map[store.Outcome]int64, error) {
	return map[store.Outcome]int64{store.Applied: 9_000_000, 99: 7}, s.currentError()
}
func (s *fakeStore) Connections() (used, idle, most int) { return 1, 2, 3 }

func (s *fakeStore) currentError() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.down
}

func (s *fakeStore) failWith(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.down = err
}

func openServer(t *testing.T, o Options, stores ...Store) *Server {
	t.Helper()
	o.Address, o.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	s, err := Open(o, stores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// get calls the server's handler without the network.
func get(s *Server, path string, change ...func(*http.Request)) (int, string) {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.server.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestScrape(t *testing.T) {
	t.Run("K4_counts_batches_and_what_is_in_hand", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		s.Started(map[string]Consumer{"billing": &idleConsumer{counts: semel.Counts{Deliveries: 9, Applied: 5, Duplicates: 3}, load: measure.Load{Messages: 1, Held: 1, Oldest: time.Minute}}})
		s.Watch().Measure(measure.Batch{Consumer: "billing@1", Messages: 5, Marking: time.Millisecond, Committing: time.Second})
		s.Watch().Measure(measure.Batch{Consumer: "billing", Messages: 1, End: measure.Unknown})
		s.Watch().Observe(semel.Event{Kind: semel.EventParked, Consumer: "billing", Reason: semel.ReasonPermanent, Messages: 1})
		s.Watch().Observe(semel.Event{Kind: eventkind.Backstop, Consumer: "billing", Messages: 1})
		for _, part := range []semel.Reason{"keys", "store", "keys", "a stranger's"} {
			s.Watch().Observe(semel.Event{Kind: semel.EventNotReady, Consumer: "billing", Reason: part})
		}
		code, text := get(s, PathMetrics)
		for _, line := range []string{
			`semel_not_ready_total{consumer="billing",part="keys"} 2`, `semel_not_ready_total{consumer="billing",part="store"} 1`, `semel_not_ready_total{consumer="billing",part="inbox"} 0`,
			`semel_deliveries_total{consumer="billing",source="kafka"} 9`, `semel_endings_total{consumer="billing",ending="applied",source="kafka"} 5`,
			`semel_effects_total{consumer="billing"} 5`, `semel_batches_total{consumer="billing",end="unknown"} 1`, `semel_batch_messages_sum{consumer="billing"} 6`,
			`semel_batch_commit_seconds_count{consumer="billing"} 1`, `semel_unapplied_total{consumer="billing",how="parked",reason="permanent failure"} 1`,
			`semel_unsettled_messages{consumer="billing",state="held"} 1`, `semel_unsettled_oldest_seconds{consumer="billing"} 60`,
			`semel_broker_lag_messages{consumer="billing"} 7`, `semel_lanes{consumer="billing",state="held up"} 1`, `semel_ready{consumer="billing"} 1`, `semel_backstops_total{consumer="billing"} 1`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("%d: the scrape has no line %s", code, line)
			}
		}
		if strings.Contains(text, "a stranger's") {
			t.Error("an unknown part became a label")
		}
		if t.Failed() {
			t.Log(text)
		}
	})
	t.Run("K4_promtool_finds_no_fault", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}}, &fakeStore{})
		s.Started(map[string]Consumer{"billing": &idleConsumer{}})
		_, text := get(s, PathMetrics)
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "semel_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	})
	t.Run("trap_86_reasons_that_handlers_make_up_are_one_label", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		for _, reason := range []semel.Reason{"account 17", "account 18", "\"\n"} {
			s.Watch().Observe(semel.Event{Kind: semel.EventParked, Consumer: "billing", Reason: reason, Messages: 1})
		}
		s.Watch().Observe(semel.Event{Kind: semel.EventParked, Consumer: "nobody's", Reason: semel.ReasonPermanent, Messages: 1})
		s.Watch().Measure(measure.Batch{Consumer: "nobody's"})
		if _, text := get(s, PathMetrics); !strings.Contains(text, `semel_unapplied_total{consumer="billing",how="parked",reason="other"} 3`) || strings.Contains(text, "nobody's") {
			t.Error(text)
		}
	})
	for what, name := range map[string]string{"quotes": `bil"ling\`, "line_breaks": "bil\nsemel_forged 1\r\n", "255_bytes": strings.Repeat("b", 255), "braces": `billing"} 1`, "no_UTF8": "b\xff"} {
		t.Run("K4_a_name_with_"+what+"_forges_no_line", func(t *testing.T) {
			s := openServer(t, Options{Loopback: true, Consumers: []string{name, "shipping"}}, &fakeStore{rows: sqlstore.Sampled{Consumers: map[string]sqlstore.SampledRows{name: {Rows: 1}}}})
			s.Started(map[string]Consumer{name: &idleConsumer{}, "shipping": &idleConsumer{}})
			code, text := get(s, PathMetrics)
			if code != http.StatusOK || !strings.Contains(text, `semel_ready{consumer="shipping"} 1`) {
				t.Fatalf("%d: %s", code, text)
			}
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go_") && !strings.HasPrefix(line, "process_") && !strings.HasPrefix(line, "promhttp_") && !strings.Contains(line, "{") || strings.HasPrefix(line, "semel_forged") {
					t.Errorf("a label forged a line: %q", line)
				}
			}
		})
	}
}

func TestEveryMetricOfTheTableIsExported(t *testing.T) {
	t.Run("K4_and_none_beside_them", func(t *testing.T) {
		row := map[string]sqlstore.SampledRows{"billing": {Rows: 1}}
		sampler := newSampler(&fakeStore{rows: sqlstore.Sampled{Consumers: row}}, slog.New(slog.DiscardHandler))
		sampler.sample(t.Context())
		w := newWatch([]string{"billing"})
		w.Observe(semel.Event{Kind: semel.EventParked, Consumer: "billing", Messages: 1})
		text := gatherText(t, newCollector(w, func() map[string]Consumer { return map[string]Consumer{"billing": &idleConsumer{}} }, []*Sampler{sampler}, Options{Spans: func() (int64, int64) { return 5, 2 }, Risks: map[string][]string{"billing": {"may double"}}}))
		known := map[string]bool{}
		for _, p := range table() {
			for _, m := range p.metrics {
				known[m.name] = true
				if !strings.Contains(text, "# TYPE "+m.name+" "+string(m.kind)+"\n") {
					t.Errorf("%s is not exported, or with another type", m.name)
				}
			}
		}
		for line := range strings.Lines(text) {
			if name, typed := strings.CutPrefix(line, "# TYPE "); typed && !known[strings.Fields(name)[0]] {
				t.Errorf("not in the table: %s", line)
			}
		}
	})
}

func TestTheSampler(t *testing.T) {
	synctestRun(t, "K4_figures_stay_when_the_store_is_down_and_say_how_old_they_are", func(t *testing.T) {
		store := &fakeStore{rows: sqlstore.Sampled{AtLeast: true, Consumers: map[string]sqlstore.SampledRows{"billing": {Rows: 9_000, Oldest: time.Hour}, "billing@2": {Rows: 1_000}, "a stranger's": {Rows: 1}}}}
		sampler := newSampler(store, slog.New(slog.DiscardHandler))
		c := newCollector(newWatch([]string{"billing"}), func() map[string]Consumer { return nil }, []*Sampler{sampler}, Options{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); sampler.work(ctx) }()
		synctest.Wait()
		says := func(lines ...string) {
			t.Helper()
			text := gatherText(t, c)
			for _, line := range lines {
				if !strings.Contains(text, line+"\n") {
					t.Errorf("there is no %s in\n%s", line, text)
				}
			}
		}
		says(`semel_store_rows{consumer="billing",state="PARKED",store="shop"} 10000`, `semel_store_rows_at_least{state="PARKED",store="shop"} 1`,
			`semel_store_oldest_seconds{consumer="billing",state="PARKED",store="shop"} 3600`, `semel_store_replays{consumer="billing",store="shop"} 2`,
			`semel_store_reaper_lag_seconds{consumer="billing",store="shop"} 3600`, `semel_store_sample_stale{store="shop"} 0`, `semel_store_sample_age_seconds{store="shop"} 0`)
		store.failWith(errors.New("down"))
		pass(10 * time.Second)
		says(`semel_store_sample_stale{store="shop"} 0`, `semel_store_sample_age_seconds{store="shop"} 10`)
		pass(20 * time.Second)
		says(`semel_store_rows{consumer="billing",state="PARKED",store="shop"} 10000`, `semel_store_sample_stale{store="shop"} 1`, `semel_store_sample_age_seconds{store="shop"} 30`)
		store.failWith(nil)
		pass(15 * time.Second)
		says(`semel_store_sample_stale{store="shop"} 0`)
		stop()
		<-ended
	})
	t.Run("K4_twenty_scrapes_at_once_wait_for_no_store", func(t *testing.T) {
		store := &fakeStore{waits: make(chan struct{})}
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}}, store)
		s.Started(map[string]Consumer{"billing": &idleConsumer{}})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				code, text := get(s, PathMetrics)
				if code != http.StatusOK || !strings.Contains(text, `semel_store_sample_stale{store="shop"} 1`) {
					t.Errorf("%d: %s", code, text)
				}
			})
		}
		all.Wait()
	})
}

// pass advances virtual time by d and lets all due goroutines run.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func synctestRun(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestAnAddressInUse(t *testing.T) {
	first := openServer(t, Options{})
	_, err := Open(Options{Address: first.Address(), Logger: slog.New(slog.DiscardHandler)}, nil)
	if err == nil || !strings.Contains(err.Error(), "stop the process that uses the address, or choose another address; no message was read") {
		t.Errorf("%v", err)
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	t.Run("K4_neither_a_batch_nor_a_duplicate_does", func(t *testing.T) {
		w := newWatch([]string{"billing"})
		if n := testing.AllocsPerRun(1000, func() {
			w.Measure(measure.Batch{Consumer: "billing", Messages: 1, Marking: 1, Handling: 1, Committing: 1})
			w.Observe(semel.Event{Kind: eventkind.Duplicate, Consumer: "billing", Messages: 1})
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// BenchmarkBatch measures the cost of metrics for one batch. For a consumer with batches of one message, the
// cost of a batch is the cost per message.
func BenchmarkBatch(b *testing.B) {
	w := newWatch([]string{"billing"})
	b.ReportAllocs()
	for b.Loop() {
		w.Measure(measure.Batch{Consumer: "billing", Messages: 1, Marking: 1, Handling: 1, Committing: 1})
	}
}

// BenchmarkDuplicate measures the cost of metrics for one duplicate.
func BenchmarkDuplicate(b *testing.B) {
	w := newWatch([]string{"billing"})
	b.ReportAllocs()
	for b.Loop() {
		w.Observe(semel.Event{Kind: eventkind.Duplicate, Consumer: "billing", Messages: 1})
	}
}

func gatherText(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}
