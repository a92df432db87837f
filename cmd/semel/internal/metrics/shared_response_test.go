package metrics

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semel-go/semel"
)

// slowConsumer is a consumer whose Counts method waits for the test. slowConsumer also counts how often the
// method Counts is called.
type slowConsumer struct {
	idleConsumer
	tell chan struct{}

	mutex sync.Mutex
	asked int64 // guarded by mutex
}

func (s *slowConsumer) Counts() semel.Counts {
	s.mutex.Lock()
	s.asked++
	n := s.asked
	s.mutex.Unlock()
	<-s.tell
	return semel.Counts{Deliveries: n}
}

func (s *slowConsumer) callCount() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.asked
}

// scrapers sends requests to a handler and counts the responses.
type scrapers struct {
	handler   http.Handler
	mutex     sync.Mutex
	responses map[string]int // number of responses by status and content; guarded by mutex
	group     sync.WaitGroup
}

// startRequests sends n requests, and returns when all of the requests wait for a response.
func (s *scrapers) startRequests(n int, encoding string) {
	for range n {
		s.group.Go(func() {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+PathMetrics, nil)
			r.Header.Set("Accept-Encoding", encoding)
			s.handler.ServeHTTP(w, r)
			text := fmt.Sprint(w.Code)
			for line := range strings.Lines(w.Body.String()) {
				if of, is := strings.CutPrefix(line, `semel_deliveries_total{consumer="billing",source="kafka"} `); is {
					text += " " + strings.TrimSpace(of)
				}
			}
			if w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
				text += " of another length"
			}
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.responses[text]++
		})
	}
	synctest.Wait()
}

func (s *scrapers) summarize() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return fmt.Sprint(s.responses)
}

func TestConcurrentScrapesShareAResponse(t *testing.T) {
	synctestRun(t, "K4_twenty_at_once_cost_as_much_as_two_and_none_is_told_what_is_older_than_it", func(t *testing.T) {
		billing := &slowConsumer{tell: make(chan struct{})}
		s := &Server{options: Options{Loopback: true, Consumers: []string{"billing"}}, watch: newWatch([]string{"billing"}), registry: prometheus.NewRegistry()}
		s.consumers = map[string]Consumer{"billing": billing}
		s.registry.MustRegister(newCollector(s.watch, s.running, nil, s.options))
		all := &scrapers{handler: s.handler(), responses: map[string]int{}}
		answers := func(asked int64, were string) {
			t.Helper()
			if n := billing.callCount(); n != asked {
				t.Errorf("the consumer was read %d times, not %d", n, asked)
			}
			billing.tell <- struct{}{}
			if synctest.Wait(); all.summarize() != were {
				t.Errorf("the responses were %s, not %s", all.summarize(), were)
			}
		}
		all.startRequests(1, "identity")
		all.startRequests(19, "identity")
		answers(1, "map[200 1:1]")
		all.startRequests(2, "identity")
		answers(2, "map[200 1:1 200 2:19]")
		answers(3, "map[200 1:1 200 2:19 200 3:2]")
		all.group.Wait()
	})
	synctestRun(t, "K4_who_asks_for_another_form_gets_his_own", func(t *testing.T) {
		of := make(chan string)
		all := &scrapers{responses: map[string]int{}, handler: newResponseSharing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			of <- r.Header.Get("Accept-Encoding") + r.Header.Get("Accept") + r.URL.RawQuery
		}))}
		all.startRequests(1, "identity")
		all.startRequests(2, "gzip")
		all.startRequests(2, "identity")
		forms := map[string]int{<-of: 1}
		for range 2 {
			synctest.Wait()
			forms[<-of]++
		}
		if forms["identity"] != 2 || forms["gzip"] != 1 {
			t.Errorf("the responses were made in the forms %v", forms)
		}
		all.group.Wait()
	})
	synctestRun(t, "K4_who_asks_for_ever_other_answers_is_put_off_and_who_has_gone_waits_for_none", func(t *testing.T) {
		goOn := make(chan struct{})
		shares := newResponseSharing(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-goOn }))
		var group sync.WaitGroup
		ask := func(ctx context.Context, query string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+PathMetrics+"?"+query, nil)
			group.Go(func() { shares.ServeHTTP(w, r) })
			synctest.Wait()
			return w
		}
		for n := range 1 + maxVariants { // send one more request, because the first response is already being made
			ask(t.Context(), fmt.Sprint("name[]=", n))
		}
		if w := ask(t.Context(), "name[]=other"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a request too many got %d", w.Code)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		left := ask(gone, fmt.Sprint("name[]=", maxVariants))
		same := ask(t.Context(), fmt.Sprint("name[]=", maxVariants))
		close(goOn)
		if group.Wait(); same.Code != http.StatusOK || same.Header().Get("Content-Length") == "" {
			t.Errorf("a request with the same variant got %d", same.Code)
		}
		if left.Header().Get("Content-Length") != "" {
			t.Error("a client that has gone still waited for a response")
		}
	})
	synctestRun(t, "K4_a_panic_is_of_who_made_the_answer_and_the_next_is_made", func(t *testing.T) {
		fails := make(chan bool)
		all := &scrapers{responses: map[string]int{}}
		shares := newResponseSharing(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a part"))
			if <-fails {
				panic("a fault")
			}
		}))
		all.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(http.StatusTeapot)
				}
			}()
			shares.ServeHTTP(w, r)
		})
		all.startRequests(1, "")
		all.startRequests(2, "")
		fails <- false
		fails <- true
		synctest.Wait()
		all.startRequests(1, "")
		fails <- false
		all.group.Wait()
		if all.summarize() != "map[200:2 418 of another length:1 500 of another length:1]" {
			t.Errorf("the responses were %s", all.summarize())
		}
	})
}

func TestResponsesAreCompressedIfTheClientAcceptsIt(t *testing.T) {
	s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
	for encoding, packed := range map[string]bool{
		"": false, "identity": false, "*": false, "gzipped": false, "gzip; q=0": false, "deflate, gzip;q=0.000": false,
		"gzip": true, "zstd;q=1, GZIP;q=0.5": true, "gzip;q=1.0": true,
	} {
		t.Run("K4_who_takes_"+encoding, func(t *testing.T) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+PathMetrics, nil)
			r.Header.Set("Accept-Encoding", encoding)
			s.server.Handler.ServeHTTP(w, r)
			var body io.Reader = w.Body
			if is := w.Header().Get("Content-Encoding") == "gzip"; is != packed {
				t.Fatalf("packed: %t", is)
			}
			if packed {
				var err error
				if body, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(body)
			if err != nil || w.Code != http.StatusOK || !strings.Contains(string(text), `semel_unapplied_total{consumer="billing",how="parked",reason="malformed"} 0`) || !slices.Contains(w.Header()["Vary"], "Accept-Encoding") {
				t.Errorf("%d, %v, %v: %s", w.Code, err, w.Header(), text)
			}
		})
	}
}
