package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/webhook"
)

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// receiver returns a Receiver with Stripe's scheme. The function set may change the configuration.
func receiver(t *testing.T, set func(*webhook.Config)) *webhook.Receiver {
	t.Helper()
	c := webhook.Config{Name: "hooks", Scheme: webhook.Stripe(), Secrets: []string{stripeSecret}}
	if set != nil {
		set(&c)
	}
	r, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func event(id string) string { return fmt.Sprintf(`{"id":%q,"type":"charge.succeeded"}`, id) }

// paidRequest returns a request as Stripe would send it now.
func paidRequest(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader([]byte(body)))
	r.Header.Set("Stripe-Signature", stripeHeader(stripeSecret, time.Now().Unix(), body))
	return r
}

func post(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// runningConsumer is a running consumer of a receiver, with a handler that counts the applied messages.
type runningConsumer struct {
	*consumer.Consumer[*memstore.Tx]
	group worker.Group
	stop  context.CancelFunc
	err   error
}

func startConsumer(t *testing.T, st store.TxStore[*memstore.Tx], r source.Source, set func(*consumer.Config)) *runningConsumer {
	t.Helper()
	c := consumer.Config{
		Name: "billing", Source: r, Identity: identity.By("body:/id"), Logger: slog.New(slog.DiscardHandler),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true,
	}
	if set != nil {
		set(&c)
	}
	made, err := consumer.New(st, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		return tx.Add("effect "+m.Identity.ID, 1)
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	running := &runningConsumer{Consumer: made}
	ctx, stop := context.WithCancel(t.Context())
	running.stop = stop
	running.group.Go(func() { running.err = made.Run(ctx) })
	return running
}

// end stops the consumer and checks the result of Run.
func (r *runningConsumer) end(t *testing.T) {
	t.Helper()
	r.stop()
	r.group.Wait()
	if r.err != nil && !errors.Is(r.err, context.Canceled) {
		t.Errorf("the run ended: %v", r.err)
	}
}

func TestReceiving(t *testing.T) {
	bubble(t, "F3_a_webhook_is_answered_when_its_row_is_committed_and_takes_effect_once", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		running := startConsumer(t, store, r, nil)
		first, again := post(r, paidRequest(event("evt_1"))), post(r, paidRequest(event("evt_1")))
		if first.Code != 200 || first.Body.String() != "{\"result\":\"received\"}\n" || again.Code != 200 || again.Body.String() != "{\"result\":\"duplicate\"}\n" {
			t.Errorf("%d %s, again %d %s", first.Code, first.Body, again.Code, again.Body)
		}
		<-time.After(time.Minute)
		running.end(t)
		if got := string(store.Get("effect evt_1")); got != "1" || r.Count(webhook.Received) != 1 || r.Count(webhook.Duplicate) != 1 {
			t.Errorf("the effect happened %q times", got)
		}
	})
	bubble(t, "F3_trap_76_signed_without_a_usable_identity_is_parked_and_answered_with_200", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		running := startConsumer(t, store, r, nil)
		for _, body := range []string{`{"type":"no id"}`, `payload=no+json`, ``, `{"id":`} {
			if w := post(r, paidRequest(body)); w.Code != 200 || w.Body.String() != "{\"result\":\"parked\"}\n" {
				t.Errorf("%q: %d %s", body, w.Code, w.Body)
			}
		}
		running.end(t)
		if counts := running.Counts(); counts.Parked != 4 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "F3_trap_73_trap_T73_other_content_under_an_identity_is_kept_for_a_person_and_answered_with_200", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		running := startConsumer(t, store, r, nil)
		post(r, paidRequest(event("evt_1")))
		if w := post(r, paidRequest(`{"id":"evt_1","type":"other"}`)); w.Body.String() != "{\"result\":\"parked\"}\n" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		running.end(t)
		if counts := running.Counts(); counts.Conflicts != 1 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestTwoHundredAtOnce(t *testing.T) {
	bubble(t, "F3_two_hundred_requests_of_one_event_at_once_have_one_effect_and_all_get_200", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		running := startConsumer(t, store, r, nil)
		var mutex sync.Mutex
		results := map[string]int{}
		var clients worker.Group
		for range 200 {
			clients.Go(func() {
				w := post(r, paidRequest(event("evt_1")))
				mutex.Lock()
				defer mutex.Unlock()
				results[fmt.Sprint(w.Code, " ", w.Body)]++
			})
		}
		clients.Wait()
		<-time.After(time.Minute)
		running.end(t)
		if results["200 {\"result\":\"received\"}\n"] != 1 || results["200 {\"result\":\"duplicate\"}\n"] != 199 || string(store.Get("effect evt_1")) != "1" {
			t.Errorf("%v, effect %s", results, store.Get("effect evt_1"))
		}
	})
}

func TestRefusals(t *testing.T) {
	body := event("evt_1")
	old := func(age time.Duration) *http.Request {
		q := paidRequest(body)
		q.Header.Set("Stripe-Signature", stripeHeader(stripeSecret, time.Now().Add(-age).Unix(), body))
		return q
	}
	with := func(q *http.Request, name, value string) *http.Request {
		q.Header.Set(name, value)
		return q
	}
	bubble(t, "F3_what_is_not_rightly_signed_is_refused_counted_and_leaves_nothing", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, func(c *webhook.Config) { c.MaxBody = 100 })
		running := startConsumer(t, store, r, nil)
		unsigned := paidRequest(body)
		unsigned.Header.Del("Stripe-Signature")
		for _, c := range []struct {
			request *http.Request
			status  int
			fate    webhook.Fate
		}{
			{unsigned, 401, webhook.NotSigned},
			{with(httptest.NewRequest(http.MethodPost, "/hooks", nil), "X-Hub-Signature-256", githubSignature), 401, webhook.NotSigned},
			{with(paidRequest(body), "Stripe-Signature", "t="), 401, webhook.Malformed},
			{with(paidRequest(body), "Stripe-Signature", stripeHeader("whsec_another_one", time.Now().Unix(), body)), 401, webhook.Forged},
			{old(time.Hour), 401, webhook.Old},
			{old(-time.Hour), 401, webhook.Old},
			{httptest.NewRequest(http.MethodGet, "/hooks", nil), 405, webhook.NotPost},
			{with(paidRequest(body), "Content-Encoding", "gzip"), 415, webhook.Encoded},
			{paidRequest(event(string(bytes.Repeat([]byte("x"), 200)))), 413, webhook.TooLarge},
		} {
			before := r.Count(c.fate)
			w := post(r, c.request)
			if w.Code != c.status || r.Count(c.fate) != before+1 || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%v: %d %s", c.fate, w.Code, w.Body)
			}
		}
		running.end(t)
		if counts := running.Counts(); counts.Deliveries != 0 {
			t.Errorf("something was delivered: %+v", counts)
		}
	})
	bubble(t, "F3_a_body_of_the_limit_and_one_more", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) { c.MaxBody = int64(len(body)) })
		running := startConsumer(t, memstore.New(), r, nil)
		if w := post(r, paidRequest(body)); w.Code != 200 {
			t.Errorf("of the limit: %d", w.Code)
		}
		for _, length := range []int64{int64(len(body)) + 1, -1} {
			q := paidRequest(body + " ")
			q.ContentLength = length // -1 means without Content-Length
			if w := post(r, q); w.Code != 413 {
				t.Errorf("one more, which says %d: %d", length, w.Code)
			}
		}
		running.end(t)
	})
	bubble(t, "F3_a_body_that_ends_early_leaves_nothing", func(t *testing.T) {
		r := receiver(t, nil)
		running := startConsumer(t, memstore.New(), r, nil)
		q := paidRequest(body)
		q.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte(body[:10])), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if w := post(r, q); w.Code != 400 || r.Count(webhook.Incomplete) != 1 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		running.end(t)
		if counts := running.Counts(); counts.Deliveries != 0 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestBackPressure(t *testing.T) {
	bubble(t, "F3_trap_T76_what_is_beyond_the_bounds_is_answered_with_429_and_what_nobody_stores_with_503", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) { c.InHand.Messages = 2 })
		var clients worker.Group
		for i := range 2 {
			clients.Go(func() {
				began := time.Now()
				w := post(r, paidRequest(event(fmt.Sprint("evt_", i))))
				if took := time.Since(began); w.Code != 503 || w.Header().Get("Retry-After") == "" || took != webhook.DefaultWait {
					t.Errorf("%d after %v", w.Code, took)
				}
			})
		}
		synctest.Wait()
		if w := post(r, paidRequest(event("evt_3"))); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("the third: %d %s", w.Code, w.Body)
		}
		clients.Wait()
		// The two messages are still in memory, and a consumer that starts now gets them.
		store := memstore.New()
		running := startConsumer(t, store, r, nil)
		<-time.After(time.Minute)
		for _, id := range []string{"evt_0", "evt_1"} {
			if w := post(r, paidRequest(event(id))); w.Body.String() != "{\"result\":\"duplicate\"}\n" || string(store.Get("effect "+id)) != "1" {
				t.Errorf("%s: %d %s, effect %s", id, w.Code, w.Body, store.Get("effect "+id))
			}
		}
		running.end(t)
		if w := post(r, paidRequest(event("evt_9"))); w.Code != 503 {
			t.Errorf("after the end: %d", w.Code)
		}
	})
	bubble(t, "F3_bytes_are_bounded_also_of_bodies_that_do_not_say_how_long_they_are", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) { c.MaxBody, c.InHand.Bytes = 100_000, 100_000 })
		var clients worker.Group
		clients.Go(func() { post(r, paidRequest(event(string(bytes.Repeat([]byte("x"), 60_000))))) })
		synctest.Wait()
		q := paidRequest(event(string(bytes.Repeat([]byte("y"), 60_000))))
		q.ContentLength = -1
		if w := post(r, q); w.Code != 429 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		clients.Wait()
	})
	bubble(t, "F3_a_client_that_has_gone_leaves_its_message_in_hand", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		ctx, gone := context.WithTimeout(t.Context(), time.Second)
		defer gone()
		if w := post(r, paidRequest(event("evt_1")).WithContext(ctx)); w.Code != 503 || r.Count(webhook.Gone) != 1 {
			t.Errorf("the status is %d", w.Code)
		}
		running := startConsumer(t, store, r, nil)
		<-time.After(time.Minute)
		running.end(t)
		if string(store.Get("effect evt_1")) != "1" {
			t.Errorf("effect %s", store.Get("effect evt_1"))
		}
	})
}

func TestUnsignedHeaders(t *testing.T) {
	github := func(delivery string) *http.Request {
		q := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader([]byte(githubBody)))
		q.Header.Set("X-Hub-Signature-256", githubSignature)
		q.Header.Set("X-GitHub-Delivery", delivery)
		return q
	}
	by := func(c *consumer.Config) { c.Identity = identity.By("header:x-github-delivery") }
	bubble(t, "F3_a_header_that_nobody_signed_is_there_only_when_it_is_declared", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) { c.Scheme, c.Secrets = webhook.GitHub(), []string{githubSecret} })
		running := startConsumer(t, memstore.New(), r, by)
		if w := post(r, github("d-1")); w.Body.String() != "{\"result\":\"parked\"}\n" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		running.end(t)
	})
	bubble(t, "F3_a_declared_header_is_the_identity_and_equal_bodies_are_counted", func(t *testing.T) {
		r := receiver(t, func(c *webhook.Config) {
			c.Scheme, c.Secrets = webhook.GitHub(), []string{githubSecret}
			c.Unsigned = webhook.Unsigned{Headers: []string{"X-GitHub-Delivery"}, Because: "bodies are seen by GitHub and by us"}
		})
		running := startConsumer(t, memstore.New(), r, by)
		for i, want := range []string{"received", "duplicate", "received"} {
			if w := post(r, github([]string{"d-1", "d-1", "d-2"}[i])); w.Body.String() != "{\"result\":\""+want+"\"}\n" {
				t.Errorf("%d: %s, want %s", i, w.Body, want)
			}
		}
		running.end(t)
		if r.EqualBodies() != 1 {
			t.Errorf("%d equal bodies", r.EqualBodies())
		}
	})
	t.Run("F3_unsigned_headers_need_a_reason_and_are_no_credentials", func(t *testing.T) {
		for _, u := range []webhook.Unsigned{
			{Headers: []string{"X-GitHub-Delivery"}}, {Because: "so"}, {Headers: []string{"Authorization"}, Because: "so"},
			{Headers: []string{"a b"}, Because: "so"}, {Headers: []string{"Webhook-Id"}, Because: "so"},
		} {
			if _, err := webhook.New(webhook.Config{Name: "a", Scheme: webhook.StandardWebhooks(), Secrets: []string{standardSecret}, Unsigned: u}); err == nil {
				t.Errorf("%+v is taken", u)
			}
		}
	})
}

// failingReader is a store that can be down.
type failingReader struct {
	*memstore.Store
	down atomic.Bool
}

func (s *failingReader) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	if s.down.Load() {
		return nil, nil, errors.New("the store is down")
	}
	return s.Store.Begin(ctx, o, marks)
}

func TestAStoreThatIsDown(t *testing.T) {
	bubble(t, "F3_trap_137_trap_T75_a_store_that_is_down_is_503_and_what_came_meanwhile_takes_effect_once", func(t *testing.T) {
		store, r := &failingReader{Store: memstore.New()}, receiver(t, nil)
		store.down.Store(true)
		running := startConsumer(t, store, r, nil)
		for range 5 {
			if w := post(r, paidRequest(event("evt_1"))); w.Code != 503 || w.Header().Get("Retry-After") == "" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		store.down.Store(false)
		<-time.After(time.Minute)
		if w := post(r, paidRequest(event("evt_1"))); w.Body.String() != "{\"result\":\"duplicate\"}\n" {
			t.Errorf("when it is back: %d %s", w.Code, w.Body)
		}
		running.end(t)
		if got := string(store.Get("effect evt_1")); got != "1" {
			t.Errorf("the effect happened %q times", got)
		}
	})
}
