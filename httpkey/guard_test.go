package httpkey_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

// fixture is a handler behind a Guard, with the store of its keys.
type fixture struct {
	*httpkey.Guard
	store   *memstore.Store
	handler http.Handler
	seen    []httpkey.Observation
}

func config() httpkey.Config {
	return httpkey.Config{Name: "orders", Caller: func(r *http.Request) string { return r.Header.Get("X-Account") }, Keep: 72 * time.Hour}
}

// effect is a handler with an effect in its transaction.
func effect(w http.ResponseWriter, r *http.Request) {
	tx, err := httpkey.TxFrom[*memstore.Tx](r.Context())
	if err == nil {
		err = tx.Add("orders", 1)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/orders/1")
	w.Header().Set("Set-Cookie", "session=secret")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "order of "+string(body))
}

// newFixture returns a protected handler and its store.
func newFixture(t *testing.T, handler http.HandlerFunc, change func(*httpkey.Config), options ...memstore.Option) *fixture {
	t.Helper()
	s := &fixture{store: memstore.New(options...)}
	c := config()
	c.Observe = func(o httpkey.Observation) { s.seen = append(s.seen, o) }
	if change != nil {
		change(&c)
	}
	g, err := httpkey.New(s.store, c)
	if err != nil {
		t.Fatal(err)
	}
	s.Guard, s.handler = g, g.Protect(handler)
	return s
}

// post sends a POST request of the account "a" and returns the response.
func (s *fixture) post(key, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
	r.Header.Set("X-Account", "a")
	if key != "" {
		r.Header.Set(httpkey.Header, key)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func TestF2ARequestThatIsRepeatedTakesEffectOnce(t *testing.T) {
	s := newFixture(t, effect, nil)
	first, second := s.post(`"k1"`, "tea"), s.post(`"k1"`, "tea")
	if first.Code != http.StatusCreated || first.Header().Get(httpkey.ReplayedHeader) != "" {
		t.Errorf("the first is %d %v: %s", first.Code, first.Header(), first.Body)
	}
	if second.Code != http.StatusCreated || second.Body.String() != "order of tea" || second.Header().Get(httpkey.ReplayedHeader) != "true" || second.Header().Get("Location") != "/orders/1" {
		t.Errorf("the second is %d %v: %s", second.Code, second.Header(), second.Body)
	}
	if second.Header().Get("Set-Cookie") != "" {
		t.Error("a secret is kept")
	}
	if n := string(s.store.Get("orders")); n != "1" {
		t.Errorf("%s effects", n)
	}
}

func TestARouteWithoutAMethodIsGuarded(t *testing.T) {
	for _, form := range []string{"New", "NewLeased"} {
		t.Run("F1_no_method_reaches_its_handler_unprotected_with_"+form, func(t *testing.T) {
			c := &blockingHandler{leave: make(chan struct{})}
			close(c.leave)
			s := newFixtures(t, c, nil)[form]
			mux := http.NewServeMux()
			mux.Handle("/orders", s.handler)
			s.handler = mux
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "post", "OPTIONS", "POSTS"} {
				w := s.post("", "tea", func(r *http.Request) { r.Method = method })
				wantProblem(t, w, http.StatusMethodNotAllowed, "method-not-protected")
				if allow := w.Header().Get("Allow"); allow != "POST, PATCH" {
					t.Errorf("of %s Allow is %q", method, allow)
				}
			}
			if n := c.most.Load(); n != 0 {
				t.Error("its handler ran")
			}
			if w := s.post(`"k"`, "tea"); w.Code != http.StatusCreated {
				t.Errorf("a POST gets %d", w.Code)
			}
		})
	}
}
