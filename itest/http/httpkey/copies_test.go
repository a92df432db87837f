package httpkey

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// clients simulates the clients of a test. Clients repeat a request until they get a final answer, as the contract
// requires.
type clients struct {
	ran   atomic.Int64  // number of runs of the handler for the shared key
	begun chan struct{} // closed when the handler runs
	ended chan struct{} // closed when all requests of other keys are answered
	mutex sync.Mutex
	took  []time.Duration // durations of requests with other keys; guarded by mutex
}

// ask repeats a request until its answer is final.
func ask(ctx context.Context, t *testing.T, to http.Handler, key string) *httptest.ResponseRecorder {
	for {
		r := httptest.NewRequest(http.MethodPost, "/orders", nil).WithContext(ctx)
		r.Header.Set("X-Account", "a")
		r.Header.Set(httpkey.Header, `"`+key+`"`)
		w := httptest.NewRecorder()
		to.ServeHTTP(w, r)
		if w.Code != http.StatusConflict && w.Code != http.StatusServiceUnavailable {
			return w
		}
		processes.Pause(ctx, 20*time.Millisecond) // a shorter pause than Retry-After says
		if ctx.Err() != nil {
			t.Errorf("no answer came: %d %s", w.Code, w.Body)
			return w
		}
	}
}

// serve returns a slow handler that writes an effect.
func (c *clients) serve(s *storeFixture) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, _ := httpkey.AttemptFrom(r.Context())
		var n int64
		if a.Key == "shared" {
			if n = c.ran.Add(1); n == 1 {
				close(c.begun)
			}
			processes.Pause(r.Context(), 200*time.Millisecond) // all repeated requests arrive in this time
			// On SQLite the other requests wait for this transaction, so the handler cannot wait for these requests.
			if !s.singleWriter {
				select {
				case <-c.ended: // neither the handler nor the repetitions of its request block another key
				case <-r.Context().Done():
					http.Error(w, "others wait for it", http.StatusInternalServerError) // the error rolls back, so the handler runs again
					return
				}
			}
		}
		if s.writeEffect != nil {
			if err := s.writeEffect(r.Context(), a.Key); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "run %d", n)
	}
}

// sendOthers sends requests with other keys while the handler of the shared key runs, and returns when these
// requests are answered.
func (c *clients) sendOthers(ctx context.Context, t *testing.T, doors []http.Handler) {
	select {
	case <-c.begun:
	case <-ctx.Done():
		t.Error("the handler does not run")
	}
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			for n := range 10 {
				began := time.Now()
				ask(ctx, t, doors[i%2], fmt.Sprintf("other %d %d", i, n))
				c.mutex.Lock()
				c.took = append(c.took, time.Since(began))
				c.mutex.Unlock()
			}
		})
	}
	asking.Wait()
	close(c.ended)
}

func TestF1TwoHundredRequestsAtOnceRunTheHandlerOnce(t *testing.T) {
	all := openers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run("F1_"+name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, c := all[name](t), &clients{begun: make(chan struct{}), ended: make(chan struct{})}
			var doors []http.Handler
			for range 2 { // two guards, as in two processes
				to := config()
				to.Wait = time.Second
				g := must.Get(s.newGuard(to, lease()))(t)
				doors = append(doors, g.ProtectFunc(c.serve(s)))
			}
			var asking sync.WaitGroup
			for i := range 200 {
				asking.Go(func() {
					if w := ask(ctx, t, doors[i%2], "shared"); w.Code != http.StatusCreated || w.Body.String() != "run 1" {
						t.Errorf("%d: %s", w.Code, w.Body)
					}
				})
			}
			c.sendOthers(ctx, t, doors)
			asking.Wait()
			if n := c.ran.Load(); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
			if s.count != nil && s.count(t, "shared") != 1 {
				t.Errorf("%d effects", s.count(t, "shared"))
			}
			slices.Sort(c.took)
			t.Logf("200 requests with one key ran the handler %d times; %d of other keys meanwhile: median %v, p99 %v, slowest %v", c.ran.Load(), len(c.took), c.took[len(c.took)/2], c.took[len(c.took)*99/100], c.took[len(c.took)-1])
		})
	}
}
