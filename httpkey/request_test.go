package httpkey_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

// earlyReader is a request body that ends early.
type earlyReader struct{ io.Reader }

func (e earlyReader) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestF1ABodyIsReadBeforeAnythingIsDone(t *testing.T) {
	small := func(c *httpkey.Config) { c.MaxBody = 10 }
	body := func(b io.Reader) func(*http.Request) {
		return func(r *http.Request) { r.Body = io.NopCloser(b) }
	}
	t.Run("F1_one_that_ends_early_leaves_nothing", func(t *testing.T) {
		s := newFixture(t, effect, nil)
		wantProblem(t, s.post(`"k"`, "", body(earlyReader{strings.NewReader("te")})), http.StatusBadRequest, "request-body-unreadable")
		if w := s.post(`"k"`, "tea"); w.Code != http.StatusCreated || w.Header().Get(httpkey.ReplayedHeader) != "" {
			t.Errorf("the whole one: %d", w.Code)
		}
	})
	t.Run("F1_one_that_is_too_large_is_refused", func(t *testing.T) {
		s := newFixture(t, effect, small)
		wantProblem(t, s.post(`"k"`, "more than ten"), http.StatusRequestEntityTooLarge, "more than 10 bytes")
		if w := s.post(`"k"`, "ten bytes."); w.Code != http.StatusCreated {
			t.Errorf("one that fits: %d", w.Code)
		}
	})
	t.Run("F1_a_handler_reads_all_of_it", func(t *testing.T) {
		s := newFixture(t, effect, nil)
		if w := s.post(`"k"`, strings.Repeat("tea", 10_000)); w.Body.Len() != len("order of ")+30_000 {
			t.Errorf("%d bytes", w.Body.Len())
		}
	})
	t.Run("F1_none_is_none", func(t *testing.T) {
		s := newFixture(t, effect, nil)
		if w := s.post(`"k"`, "", func(r *http.Request) { r.Body = nil }); w.Code != http.StatusCreated {
			t.Errorf("%d", w.Code)
		}
	})
}

func TestTrapT74AKeyBelongsToOneRequest(t *testing.T) {
	path := func(path string) func(*http.Request) {
		return func(r *http.Request) { r.URL = httptest.NewRequest(http.MethodPost, path, nil).URL }
	}
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		same   bool
	}{
		"F1_trap_T74_the_same":                             {`{"tea":1}`, func(*http.Request) {}, true},
		"F1_trap_T74_with_another_header":                  {`{"tea":1}`, func(r *http.Request) { r.Header.Set("User-Agent", "another") }, true},
		"F1_trap_T74_at_another_host":                      {`{"tea":1}`, func(r *http.Request) { r.Host = "eu.shop.example" }, true},
		"F1_trap_T74_another_content_type":                 {`{"tea":1}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, false},
		"F1_trap_T74_another_content_encoding":             {`{"tea":1}`, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, false},
		"F1_trap_T74_another_body":                         {`{"tea":2}`, func(*http.Request) {}, false},
		"F1_trap_T74_json_that_differs_in_a_space":         {`{"tea": 1}`, func(*http.Request) {}, false},
		"F1_trap_T74_another_path":                         {`{"tea":1}`, path("/orders/1/refund"), false},
		"F1_trap_T74_another_query":                        {`{"tea":1}`, path("/orders?now=1"), false},
		"F1_trap_T74_another_method":                       {`{"tea":1}`, func(r *http.Request) { r.Method = http.MethodPatch }, false},
		"F1_trap_T74_a_part_of_the_path_moved_to_the_body": {`s{"tea":1}`, path("/order"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, effect, nil)
			s.post(`"k"`, `{"tea":1}`)
			w := s.post(`"k"`, c.body, c.change)
			if replayed := w.Code == http.StatusCreated; replayed != c.same {
				t.Errorf("it is %d", w.Code)
			}
			if !c.same {
				wantProblem(t, w, http.StatusUnprocessableEntity, "idempotency-key-reused")
			}
			if n := string(s.store.Get("orders")); n != "1" {
				t.Errorf("%s effects", n)
			}
		})
	}
}

func TestTrapT74AnEscapedSlashIsNoSlash(t *testing.T) {
	path := func(path string) func(*http.Request) {
		return func(r *http.Request) { r.URL = httptest.NewRequest(http.MethodPost, path, nil).URL }
	}
	s := newFixture(t, effect, nil)
	s.post(`"k"`, "tea", path("/orders/a%2Fb"))
	wantProblem(t, s.post(`"k"`, "tea", path("/orders/a/b")), http.StatusUnprocessableEntity, "idempotency-key-reused")
}

func TestTrapT73TheStatusesForMismatchesAndRequestsInProgressCanBeChosen(t *testing.T) {
	t.Run("F1_trap_T73_of_an_api_in_which_they_say_something_else", func(t *testing.T) {
		s := newFixture(t, effect, func(c *httpkey.Config) {
			c.MismatchStatus, c.Problems = http.StatusConflict, "https://example.org/problems/"
		})
		s.post(`"k"`, "tea")
		wantProblem(t, s.post(`"k"`, "coffee"), http.StatusConflict, `"type":"https://example.org/problems/idempotency-key-reused"`)
		var copied *httptest.ResponseRecorder
		s = newFixture(t, func(http.ResponseWriter, *http.Request) { copied = s.post(`"k"`, "tea") }, func(c *httpkey.Config) { c.InFlightStatus = http.StatusLocked })
		s.post(`"k"`, "tea")
		wantProblem(t, copied, http.StatusLocked, "request-in-progress")
		if copied.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", copied.Header().Get("Retry-After"))
		}
	})
}

func TestF1KeysOfTwoCallersNeverMeet(t *testing.T) {
	t.Run("F1_trap_T74_whatever_they_are", func(t *testing.T) {
		of := func(account string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("X-Account", account) }
		}
		s := newFixture(t, effect, nil)
		s.post(`"k"`, "tea", of("a"))
		if w := s.post(`"k"`, "tea", of("b")); w.Header().Get(httpkey.ReplayedHeader) != "" || string(s.store.Get("orders")) != "2" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		wantProblem(t, s.post(`"k"`, "tea", of("")), http.StatusUnauthorized, "caller-unknown")
		wantProblem(t, s.post(`"k"`, "tea", of(strings.Repeat("a", 2000))), http.StatusUnauthorized, "caller-unknown")
		// Without a separator between caller and key, the ids of the two requests would be equal.
		s.post(`"kk"`, "tea", of("a"))
		if w := s.post(`"k"`, "tea", of("ak")); w.Header().Get(httpkey.ReplayedHeader) != "" {
			t.Error("a caller got the answer of another one")
		}
	})
}

func TestF1TenantsByHostAreKeptApartByTheirCallers(t *testing.T) {
	t.Run("F1_trap_T74_who_names_the_tenant_in_the_caller", func(t *testing.T) {
		s := newFixture(t, effect, func(c *httpkey.Config) {
			c.Caller = func(r *http.Request) string { return r.Host + "/" + r.Header.Get("X-Account") }
		})
		for _, host := range []string{"one.example", "two.example"} {
			w := s.post(`"k"`, "tea", func(r *http.Request) { r.Host = host })
			if w.Code != http.StatusCreated || w.Header().Get(httpkey.ReplayedHeader) != "" {
				t.Errorf("%s gets %d %v", host, w.Code, w.Header())
			}
		}
		if n := s.countEffects(); n != "2" {
			t.Errorf("%s effects", n)
		}
	})
}

func TestF1RequestsWithoutAKeyPassOnlyIfConfigured(t *testing.T) {
	s := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, func(c *httpkey.Config) { c.Pass = []string{http.MethodGet} })
	if w := s.post("", "", func(r *http.Request) { r.Method = http.MethodGet }); w.Code != http.StatusAccepted {
		t.Errorf("a GET: %d", w.Code)
	}
	wantProblem(t, s.post("", "tea"), http.StatusBadRequest, "idempotency-key-missing")
	if last := s.seen[len(s.seen)-2:]; last[0].Fate != httpkey.Passed || last[1].Fate != httpkey.Refused || last[1].Code != "idempotency-key-missing" || last[1].Status != 400 {
		t.Errorf("the observation is %+v", last)
	}
	l := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.Optional = true })
	if w := l.post("", "tea"); w.Code != http.StatusAccepted {
		t.Errorf("an optional one: %d", w.Code)
	}
	wantProblem(t, l.post("b ad", "tea"), http.StatusBadRequest, "idempotency-key-invalid")
}

func TestTrapT74AKeyThatAnEarlierReleaseStoredIsAnswered(t *testing.T) {
	t.Run("F1_trap_T74_by_a_fingerprint_without_content_type", func(t *testing.T) {
		store, handler := memstore.NewKeys(), &calls{status: http.StatusCreated}
		earlier, err := leasedkey.New(store, leasedkey.Config{Consumer: "orders", Keep: 72 * time.Hour, Window: leasedkey.Always, AllowVolatile: "a test"})
		if err != nil {
			t.Fatal(err)
		}
		asked := leasedkey.Request{Source: "a", ID: "k", Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{1}}}
		if _, err := earlier.Do(t.Context(), asked, func(context.Context, leasedkey.Attempt) ([]byte, error) {
			return []byte("\x01\xc9\x01\x00was placed"), nil // a kept answer: its format, 201, no header
		}); err != nil {
			t.Fatal(err)
		}
		s := newLeasedFixture(t, store, handler.serve, nil)
		w := s.post(`"k"`, "tea", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
		if w.Code != http.StatusCreated || w.Body.String() != "was placed" || w.Header().Get(httpkey.ReplayedHeader) != "true" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		handler.want(t, 0)
	})
}
