package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/webhook"
)

// startConsumerWith runs a consumer of a receiver with the handler h.
func startConsumerWith(t *testing.T, store *memstore.Store, r *webhook.Receiver, h func(context.Context, *memstore.Tx, *semel.Message) error, set func(*consumer.Config)) *runningConsumer {
	t.Helper()
	c := consumer.Config{
		Name: "billing", Source: r, Identity: identity.By("body:/id"), Logger: slog.New(slog.DiscardHandler), Workers: 1,
		Strategy: consumer.StrategyInbox, AckOnReceipt: true,
	}
	set(&c)
	made, err := consumer.New(store, h, c)
	if err != nil {
		t.Fatal(err)
	}
	running := &runningConsumer{Consumer: made}
	ctx, stop := context.WithCancel(t.Context())
	running.stop = stop
	running.group.Go(func() { running.err = made.Run(ctx) })
	return running
}

// expectResponse compares a response with the expected response.
func expectResponse(t *testing.T, w *httptest.ResponseRecorder, status int, result string) {
	t.Helper()
	if want := fmt.Sprintf("{\"result\":%q}\n", result); w.Code != status || status == 200 && w.Body.String() != want {
		t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, result)
	}
	if (w.Code == 503 || w.Code == 429) && w.Header().Get("Retry-After") == "" {
		t.Errorf("%d does not say when to come again", w.Code)
	}
}

func TestHandlersThatFailAreNotTheProviders(t *testing.T) {
	for name, end := range map[string]func(){"panics": func() { panic("no") }, "ends_its_goroutine": runtime.Goexit} {
		bubble(t, "F3_trap_133_a_handler_that_"+name+"_has_its_webhook_answered_with_200_and_set_aside", func(t *testing.T) {
			store, r := memstore.New(), receiver(t, nil)
			running := startConsumerWith(t, store, r, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "bad" {
					end()
				}
				return tx.Add("effect "+m.Identity.ID, 1)
			}, func(c *consumer.Config) { c.Retry.MaxAttempts = 2 })
			for _, id := range []string{"before", "bad", "after"} {
				expectResponse(t, post(r, paidRequest(event(id))), 200, "received")
			}
			<-time.After(10 * time.Minute)
			expectResponse(t, post(r, paidRequest(event("bad"))), 200, "duplicate")
			running.end(t)
			if counts := running.Counts(); counts.Inbox.Parked != 1 || string(store.Get("effect before")) != "1" || string(store.Get("effect after")) != "1" || store.Get("effect bad") != nil {
				t.Errorf("%+v", counts)
			}
		})
	}
	bubble(t, "F3_trap_134_a_handler_that_ignores_its_time_out_keeps_no_webhook_from_being_answered", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		running := startConsumerWith(t, store, r, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "slow" {
				<-time.After(time.Hour)
			}
			return tx.Add("effect "+m.Identity.ID, 1)
		}, func(c *consumer.Config) { c.Timeout, c.Retry.MaxAttempts, c.Workers = time.Second, 1, 4 }) // more workers than requests
		for _, id := range []string{"slow", "1", "2"} {
			began := time.Now()
			expectResponse(t, post(r, paidRequest(event(id))), 200, "received")
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s is answered after %v", id, took)
			}
			<-time.After(time.Minute)
		}
		<-time.After(2 * time.Hour)
		running.end(t)
		if store.Get("effect slow") != nil || string(store.Get("effect 2")) != "1" {
			t.Errorf("%+v", running.Counts())
		}
	})
}

func TestAStopWhileRequestsWait(t *testing.T) {
	bubble(t, "F3_trap_135_who_waits_when_it_stops_gets_503_and_has_its_effect_once_from_the_next_process", func(t *testing.T) {
		store := &failingReader{Store: memstore.New()}
		store.down.Store(true)
		first := receiver(t, nil)
		running := startConsumer(t, store, first, func(c *consumer.Config) { c.Drain = time.Second })
		var clients worker.Group
		for i := range 20 {
			clients.Go(func() { expectResponse(t, post(first, paidRequest(event(fmt.Sprint("evt_", i)))), 503, "") })
		}
		synctest.Wait()
		began := time.Now()
		running.end(t)
		clients.Wait()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("they waited for %v", took)
		}
		store.down.Store(false)
		second := receiver(t, nil)
		running = startConsumer(t, store, second, nil)
		for range 2 {
			for i := range 20 {
				if w := post(second, paidRequest(event(fmt.Sprint("evt_", i)))); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		}
		<-time.After(time.Minute)
		running.end(t)
		for i := range 20 {
			if got := string(store.Get(fmt.Sprint("effect evt_", i))); got != "1" {
				t.Errorf("event %d took effect %q times", i, got)
			}
		}
	})
}

// markByNewer writes a marker for an event of "billing" with an outcome that only a newer release knows. The
// returned function changes the marker to discarded, as a newer release may do.
func markByNewer(t *testing.T, st *memstore.Store, id string) (ends func()) {
	t.Helper()
	scope, err := st.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(e store.Ending) {
		t.Helper()
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: 9}})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), e); r.Outcome != store.Committed {
			t.Fatal(r)
		}
	}
	write(store.Ending{})
	return func() {
		m := semel.NewMessage(semel.Key{Consumer: "billing", ID: id}, []byte(event(id)))
		write(store.Ending{Rows: []store.Row{{State: store.StateDiscarded, Message: m}}})
	}
}

func TestAnEventThatANewerReleaseHasMarked(t *testing.T) {
	bubble(t, "F3_trap_136_is_503_until_its_marker_can_be_read_and_never_200_for_what_nobody_here_knows", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, nil)
		ends := markByNewer(t, store, "evt_1")
		running := startConsumer(t, store, r, func(c *consumer.Config) { c.Lanes = consumer.LanesNone })
		for range 2 {
			expectResponse(t, post(r, paidRequest(event("evt_1"))), 503, "")
		}
		expectResponse(t, post(r, paidRequest(event("evt_2"))), 200, "received")
		ends()
		<-time.After(time.Minute)
		expectResponse(t, post(r, paidRequest(event("evt_1"))), 200, "duplicate")
		running.end(t)
		if store.Get("effect evt_1") != nil || string(store.Get("effect evt_2")) != "1" {
			t.Errorf("effects %s and %s", store.Get("effect evt_1"), store.Get("effect evt_2"))
		}
	})
}

func TestHeadersInTheMessageOfARequest(t *testing.T) {
	bubble(t, "F3_trap_T75_a_refusal_is_not_remembered", func(t *testing.T) {
		store, r := memstore.New(), receiver(t, func(c *webhook.Config) { c.MaxBody = 200 })
		running := startConsumer(t, store, r, nil)
		forged := paidRequest(event("evt_1"))
		forged.Header.Set("Stripe-Signature", stripeHeader("whsec_another_one", time.Now().Unix(), event("evt_1")))
		expectResponse(t, post(r, forged), 401, "")
		encoded := paidRequest(event("evt_1"))
		encoded.Header.Set("Content-Encoding", "gzip")
		expectResponse(t, post(r, encoded), 415, "")
		expectResponse(t, post(r, paidRequest(event("evt_1")+fmt.Sprintf("%200s", ""))), 413, "")
		expectResponse(t, post(r, paidRequest(event("evt_1"))), 200, "received")
		running.end(t)
	})
	bubble(t, "F3_trap_T74_one_event_at_two_endpoints_takes_effect_for_each", func(t *testing.T) {
		store := memstore.New()
		body := event("evt_1")
		endpoint := func(name, secret string) (*webhook.Receiver, *runningConsumer) {
			r := receiver(t, func(c *webhook.Config) { c.Name, c.Secrets = name, []string{secret} })
			return r, startConsumerWith(t, store, r, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
				return tx.Add(name+" "+m.Identity.ID, 1)
			}, func(c *consumer.Config) { c.Name = name })
		}
		billing, first := endpoint("billing", stripeSecret)
		shipping, second := endpoint("shipping", "whsec_of_the_other_endpoint")
		expectResponse(t, post(billing, paidRequest(body)), 200, "received")
		expectResponse(t, post(shipping, paidRequest(body)), 401, "") // the request is signed for the other receiver
		q := paidRequest(body)
		q.Header.Set("Stripe-Signature", stripeHeader("whsec_of_the_other_endpoint", time.Now().Unix(), body))
		expectResponse(t, post(shipping, q), 200, "received")
		<-time.After(time.Minute)
		first.end(t)
		second.end(t)
		if string(store.Get("billing evt_1")) != "1" || string(store.Get("shipping evt_1")) != "1" {
			t.Errorf("%q and %q", store.Get("billing evt_1"), store.Get("shipping evt_1"))
		}
	})
}

func TestJSONThatDiffersOnlyInSpaces(t *testing.T) {
	const spaced = `{ "id": "evt_1",  "type": "charge.succeeded" }`
	bubble(t, "F3_trap_74_is_the_same_event_and_another_value_is_not", func(t *testing.T) {
		r := receiver(t, nil)
		running := startConsumer(t, memstore.New(), r, nil)
		expectResponse(t, post(r, paidRequest(event("evt_1"))), 200, "received")
		expectResponse(t, post(r, paidRequest(spaced)), 200, "duplicate")
		expectResponse(t, post(r, paidRequest(strings.Replace(spaced, "succeeded", "failed", 1))), 200, "parked")
		running.end(t)
	})
}

func TestBodiesThatDoNotCome(t *testing.T) {
	bubble(t, "F3_a_thousand_requests_that_only_stand_there_take_little_memory", func(t *testing.T) {
		const requests = 1_000
		r := receiver(t, nil)
		used := func() int64 { // memory of earlier tests may be freed during this test
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := used()
		var clients worker.Group
		var bodies []*io.PipeWriter
		for i := range requests {
			reader, writer := io.Pipe()
			bodies = append(bodies, writer)
			clients.Go(func() {
				q := paidRequest("")
				q.Body, q.ContentLength = reader, webhook.DefaultMaxBody
				q.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", i%8)
				post(r, q)
			})
		}
		synctest.Wait()
		if took := (used() - before) / requests; took > 16<<10 {
			t.Errorf("each takes %d bytes", took)
		}
		for _, b := range bodies {
			_ = b.CloseWithError(io.ErrUnexpectedEOF)
		}
		clients.Wait()
	})
}

// A client without the secret uses memory only while its request is in progress.
func TestStrangersBodiesLeaveNoTrace(t *testing.T) {
	bubble(t, "F3_the_bytes_of_what_is_refused_are_given_back", func(t *testing.T) {
		body := event("evt_1")
		r := receiver(t, func(c *webhook.Config) { c.MaxBody, c.InHand.Bytes = int64(len(body)), int64(len(body)) })
		running := startConsumer(t, memstore.New(), r, nil)
		forged := paidRequest(body)
		forged.Header.Set("Stripe-Signature", stripeHeader("whsec_another_one", time.Now().Unix(), body))
		early := paidRequest(body)
		early.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:10]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		long := paidRequest(body + " ")
		long.ContentLength = -1
		for want, q := range map[int]*http.Request{401: forged, 400: early, 413: long} {
			if w := post(r, q); w.Code != want {
				t.Errorf("%d, want %d", w.Code, want)
			}
			if w := post(r, paidRequest(body)); w.Code != 200 {
				t.Errorf("behind one that is answered with %d: %d %s", want, w.Code, w.Body)
			}
		}
		running.end(t)
		for range 2 { // also for requests that arrive while no consumer runs
			if w := post(r, paidRequest(body)); w.Code != 503 {
				t.Errorf("after the end: %d %s", w.Code, w.Body)
			}
		}
	})
}
