package httpkey_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

// withAccount returns a function that changes a request's account.
func withAccount(account string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Account", account) }
}

// blockingHandler is a handler that waits and counts its running calls.
type blockingHandler struct {
	leave     chan struct{}
	now, most atomic.Int64
	effect    http.HandlerFunc // called before the handler returns; nil means that it responds with 201
}

func (c *blockingHandler) serve(w http.ResponseWriter, r *http.Request) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for was := c.most.Load(); now > was && !c.most.CompareAndSwap(was, now); was = c.most.Load() {
	}
	<-c.leave
	if c.effect != nil {
		c.effect(w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// newFixtures returns two protected handlers, one for each kind of guard (transactional and leased). Both guards
// protect the same handler and have the changed configuration.
func newFixtures(t *testing.T, c *blockingHandler, change func(*httpkey.Config)) map[string]*fixture {
	quiet := func(to *httpkey.Config) {
		to.Observe = nil
		if change != nil {
			change(to)
		}
	}
	return map[string]*fixture{
		"New":       newFixture(t, c.serve, quiet),
		"NewLeased": newLeasedFixture(t, memstore.NewKeys(), c.serve, func(to *httpkey.Config, _ *httpkey.LeaseConfig) { quiet(to) }),
	}
}

func TestOneCallerDoesNotShutOutTheOthers(t *testing.T) {
	for _, form := range []string{"New", "NewLeased"} {
		t.Run("F1_a_caller_with_slow_requests_leaves_places_with_"+form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &blockingHandler{leave: make(chan struct{})}
				s := newFixtures(t, c, func(to *httpkey.Config) { to.MostOpen = 8 })[form]
				var refused atomic.Int64
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						if w := s.post(`"k`+strconv.Itoa(i)+`"`, "tea"); w.Code != http.StatusCreated {
							wantProblem(t, w, http.StatusTooManyRequests, "too-many-requests-of-caller")
							refused.Add(1)
						}
					})
				}
				synctest.Wait()
				if n := c.now.Load(); n != 4 {
					t.Errorf("%d handlers of one caller run, want half of 8", n)
				}
				other := make(chan int)
				go func() { other <- s.post(`"k"`, "tea", withAccount("b")).Code }()
				synctest.Wait()
				if n := c.now.Load(); n != 5 {
					t.Errorf("%d handlers run, including that of another caller", n)
				}
				advanceTime(2 * time.Second)
				close(c.leave)
				if code := <-other; code != http.StatusCreated {
					t.Errorf("the other caller gets %d", code)
				}
				all.Wait()
				if refused.Load() != 16 {
					t.Errorf("%d of 20 were refused", refused.Load())
				}
				if collectMetrics(s.Guard)["keys open"] != 0 {
					t.Errorf("places are kept: %v", collectMetrics(s.Guard))
				}
			})
		})
	}
}

func TestAHandlerKeepsItsPlaceUntilItEnds(t *testing.T) {
	for _, form := range []string{"New", "NewLeased"} {
		t.Run("F1_though_its_client_has_gone_and_its_time_is_over_with_"+form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &blockingHandler{leave: make(chan struct{})}
				s := newFixtures(t, c, nil)[form]
				bound := collectMetrics(s.Guard)["keys most"] / 2
				var all sync.WaitGroup
				ctx, hangUp := context.WithCancel(t.Context())
				for i := range 500 {
					all.Go(func() {
						s.post(`"k`+strconv.Itoa(i)+`"`, "tea", func(r *http.Request) { *r = *r.WithContext(ctx) })
					})
				}
				synctest.Wait()
				hangUp()
				advanceTime(31 * time.Second) // the timeout has passed, and all clients have a response
				all.Wait()
				for i := range 20 {
					all.Go(func() { s.post(`"again`+strconv.Itoa(i)+`"`, "tea") })
				}
				all.Wait()
				if n := float64(c.most.Load()); n != bound || bound == 0 {
					t.Errorf("%v handlers of one caller ran at a time, want at most %v", n, bound)
				}
				close(c.leave)
				if !s.Drain(t.Context()) {
					t.Error("the handlers did not end")
				}
				synctest.Wait()
				if code := s.post(`"later"`, "tea").Code; code != http.StatusCreated {
					t.Errorf("later it is %d", code)
				}
			})
		})
	}
}

// slow is a request body whose bytes do not arrive until a test allows it.
type slow struct{ comes chan struct{} }

func (s slow) Read([]byte) (int, error) {
	<-s.comes
	return 0, io.EOF
}

func TestBodiesOfOneCallerAreBounded(t *testing.T) {
	for _, form := range []string{"New", "NewLeased"} {
		t.Run("F1_those_that_are_being_read_with_"+form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &blockingHandler{leave: make(chan struct{})}
				close(c.leave)
				s := newFixtures(t, c, func(to *httpkey.Config) { to.MaxBody, to.MostBytes = 100, 1000 })[form]
				comes, refused := make(chan struct{}), atomic.Int64{}
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						w := s.post(`"k`+strconv.Itoa(i)+`"`, "", func(r *http.Request) {
							r.Body, r.ContentLength = io.NopCloser(slow{comes}), 100
							if i%2 == 0 { // without Content-Length
								r.ContentLength = -1
							}
						})
						if w.Code == http.StatusTooManyRequests {
							refused.Add(1)
						}
					})
				}
				advanceTime(2 * time.Second)
				if refused.Load() != 15 {
					t.Errorf("%d were refused, want all but the five whose bodies fit", refused.Load())
				}
				if code := s.post(`"k"`, "tea", withAccount("b")).Code; code != http.StatusCreated {
					t.Errorf("another caller gets %d", code)
				}
				close(comes)
				all.Wait()
				for i := range 20 { // the bytes of a body are released
					if code := s.post(`"again`+strconv.Itoa(i)+`"`, "tea").Code; code != http.StatusCreated {
						t.Errorf("the %d-th after it gets %d", i, code)
					}
				}
			})
		})
	}
}

func TestCallersThatWaitTakeTurns(t *testing.T) {
	t.Run("F1_many_requests_of_one_do_not_delay_those_of_another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &blockingHandler{leave: make(chan struct{})}
			s := newFixtures(t, c, func(to *httpkey.Config) { to.MostOpen, to.MostOfCaller = 1, 1 })["NewLeased"]
			order := make(chan string, 102)
			c.effect = func(_ http.ResponseWriter, r *http.Request) { order <- r.Header.Get("X-Account") }
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() { s.post(`"k`+strconv.Itoa(i)+`"`, "tea") })
			}
			synctest.Wait()
			all.Go(func() { s.post(`"k"`, "tea", withAccount("b")) })
			synctest.Wait()
			close(c.leave)
			all.Wait()
			close(order)
			for at := 0; ; at++ {
				account, more := <-order
				switch {
				case account == "b" && at > 2:
					t.Errorf("the request was served as number %d", at)
				case !more && at != 101:
					t.Errorf("%d ran", at)
				}
				if !more {
					return
				}
			}
		})
	})
}
