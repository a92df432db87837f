package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/house/pages"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// capture asks the provider to capture the money of an order. The provider responds to a repeated request with the
// same key as it did before.
func capture(ctx context.Context, provider string, m *semel.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // less than Config.Timeout
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, provider, strings.NewReader(string(m.Body)))
	if err != nil {
		return semel.Permanent(err)
	}
	request.Header.Set("Idempotency-Key", m.IdempotencyKey("capture"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return semel.Unknown(err) // the outcome is unknown: call again
	}
	defer func() { _ = answer.Body.Close() }()
	return judge(answer)
}

// judge returns the handler's error for a response.
func judge(answer *http.Response) error {
	err := errors.New("the provider answered " + answer.Status)
	switch {
	case answer.StatusCode < 300:
		return nil
	case answer.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return semel.RetryAfter(err, time.Duration(seconds)*time.Second)
	case answer.StatusCode < 500 && answer.StatusCode != http.StatusConflict:
		return semel.Permanent(err) // a repeated request gets the same response
	}
	return semel.Unknown(err) // also 409: the first call with this key still runs
}

func callingOut(src source.Source) consumer.Config {
	return consumer.Config{
		Name: "billing", Source: src, Identity: identity.CloudEvents(),
		Batch:           consumer.BatchLimits{MaxSize: 1}, // a failure of another message repeats no call
		Timeout:         10 * time.Second,
		MaxInMemoryWait: 10 * time.Minute, // the maximum wait; the lane waits too
		Retry:           consumer.RetryPolicy{MaxAttempts: 30, InitialDelay: time.Second, MaxDelay: time.Minute},
	}
}

func withoutTransaction[Tx any](st store.TxStore[Tx], src source.Source, provider string) (*consumer.Consumer[consumer.Call], error) {
	return consumer.NewLeased(st, func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
		return capture(ctx, provider, m)
	}, consumer.Config{
		Name: "billing", Source: src, Identity: identity.CloudEvents(),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true,
		Workers: 64, Timeout: 10 * time.Second,
	})
}

func callThenWrite(store *memstore.Store, src source.Source, provider string) (*consumer.Consumer[consumer.Call], error) {
	return consumer.NewCalling(store, func(ctx context.Context, m *semel.Message) (string, error) {
		return m.IdempotencyKey("capture"), capture(ctx, provider, m) // no transaction is open
	}, func(_ context.Context, tx *memstore.Tx, receipt string, m *semel.Message) error {
		return tx.Set("receipt of "+m.Identity.ID, []byte(receipt)) // commits with the completion
	}, consumer.Config{
		Name: "billing", Source: src, Identity: identity.CloudEvents(),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true,
		Workers: 64, Timeout: 10 * time.Second,
	})
}

func ExampleNewCalling() {
	taken, calls := map[string]bool{}, 1 // no response is lost
	server := provider(taken, &calls)
	defer server.Close()
	store, m := memstore.New(), semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}, []byte(`{"amount":12}`))
	running, err := callThenWrite(store, newListSource(m), server.URL)
	if err == nil {
		err = running.Run(context.Background())
	}
	fmt.Println(err, "taken:", len(taken), "receipt:", string(store.Get("receipt of order-17")) == m.IdempotencyKey("capture"))
	// Output: <nil> taken: 1 receipt: true
}

// asking describes a provider that remembers keys for a day and can be asked whether a capture with a key
// happened.
func asking(provider string) consumer.Provider {
	return consumer.Provider{
		Window: 24 * time.Hour,
		Lookup: func(ctx context.Context, m *semel.Message) (consumer.LookupResult, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, provider+"/captures/"+m.IdempotencyKey("capture"), nil)
			if err != nil {
				return consumer.StillUnknown, err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return consumer.StillUnknown, err
			}
			defer func() { _ = answer.Body.Close() }()
			switch answer.StatusCode {
			case http.StatusOK:
				return consumer.Happened, nil
			case http.StatusNotFound:
				return consumer.DidNotHappen, nil
			}
			return consumer.StillUnknown, errors.New("the provider answered " + answer.Status)
		},
	}
}

// provider captures money once for each key, and loses its first response.
func provider(taken map[string]bool, calls *int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken[r.Header.Get("Idempotency-Key")] = true
		if *calls++; *calls == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
}

func Example_callingOut() {
	taken, calls := map[string]bool{}, 0
	server := provider(taken, &calls)
	defer server.Close()
	source := newListSource(semel.NewMessage(semel.Key{Source: "shop", ID: "order-17"}, []byte(`{"amount":12}`)))
	c := callingOut(source)
	c.Logger, c.Retry.InitialDelay = quiet(), time.Millisecond
	store := memstore.New()
	running, err := consumer.New(store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		if err := capture(ctx, server.URL, m); err != nil {
			return err
		}
		return tx.Add("captured "+m.Identity.ID, 1)
	}, c)
	if err == nil {
		err = running.Run(context.Background())
	}
	fmt.Println(err, "calls:", calls, "taken:", len(taken), "captured:", string(store.Get("captured order-17")))
	// Output: <nil> calls: 2 taken: 1 captured: 1
}

func TestThePageAboutCallingOutShowsTheExample(t *testing.T) {
	pages.Shows(t, "../docs/guides/calling-out.md", 1, pages.Read(t, "calling_out_example_test.go"))
}

func TestResponsesOfAProvider(t *testing.T) {
	for status, want := range map[int]semel.Decision{
		http.StatusTooManyRequests: semel.DecideRetry, http.StatusConflict: semel.DecideUnknown, http.StatusBadGateway: semel.DecideUnknown,
		http.StatusUnprocessableEntity: semel.DecidePermanent, http.StatusNotFound: semel.DecidePermanent,
	} {
		var decided *semel.HandlerError
		answer := http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"7"}}}
		if err := judge(&answer); !errors.As(err, &decided) || decided.Decision != want || (status == http.StatusTooManyRequests) != (decided.After == 7*time.Second) {
			t.Errorf("%d means %v", status, err)
		}
	}
}

func TestAProviderIsAskedByItsKey(t *testing.T) {
	var path string
	for status, want := range map[int]consumer.LookupResult{
		http.StatusOK: consumer.Happened, http.StatusNotFound: consumer.DidNotHappen, http.StatusBadGateway: consumer.StillUnknown,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			w.WriteHeader(status)
		}))
		m := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}, nil)
		found, err := asking(server.URL).Lookup(t.Context(), m)
		server.Close()
		if found != want || (err != nil) != (want == consumer.StillUnknown) || path != "/captures/"+m.IdempotencyKey("capture") {
			t.Errorf("%d means %v, %v, of %s", status, found, err, path)
		}
	}
}
