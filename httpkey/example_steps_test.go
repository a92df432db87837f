package httpkey_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

// shopOrders is a handler that charges a card and sends a mail, each in a step.
type shopOrders struct{ lost bool }

func (s *shopOrders) charge(_ context.Context, key string) ([]byte, error) {
	fmt.Println("charge under", key[:8])
	return []byte("receipt 17"), nil
}

func (s *shopOrders) mail(_ context.Context, key string) error {
	fmt.Println("mail under", key[:8])
	if s.lost {
		return fmt.Errorf("no answer came")
	}
	return nil
}

func (s *shopOrders) order(w http.ResponseWriter, r *http.Request) {
	receipt, err := httpkey.Step(r.Context(), "charge", func(ctx context.Context, a httpkey.Attempt) ([]byte, error) {
		return s.charge(ctx, a.IdempotencyKey)
	})
	if err == nil {
		_, err = httpkey.Step(r.Context(), "mail", func(ctx context.Context, a httpkey.Attempt) ([]byte, error) {
			return nil, s.mail(ctx, a.IdempotencyKey)
		})
	}
	if err != nil {
		http.Error(w, "the order is not complete", http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(receipt)
}

func ExampleStep() {
	guard, err := httpkey.NewLeased(memstore.NewKeys(), httpkey.Config{Name: "orders", OneTenant: true, Keep: 72 * time.Hour}, httpkey.LeaseConfig{
		Window:        23 * time.Hour, // for each step: bank and mailer remember a key for a day
		Stepped:       true,
		Completion:    &httpkey.Completion{Headers: []string{"X-Currency"}},
		AllowVolatile: "an example",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &shopOrders{lost: true}
	api := guard.ProtectFunc(s.order)
	ask(api, "8e03978e")
	s.lost = false
	ask(api, "8e03978e") // without this request, a Completer would finish the first one
	ask(api, "8e03978e")
	// Output:
	// charge under 6b81b990
	// mail under 1c931a19
	// 502 the order is not complete
	//  (replayed: false)
	// mail under 1c931a19
	// 201 receipt 17 (replayed: false)
	// 201 receipt 17 (replayed: true)
}

func ExampleGuard_Completer() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	guard, err := httpkey.NewLeased(memstore.NewKeys(), httpkey.Config{Name: "orders", OneTenant: true, Keep: 72 * time.Hour},
		httpkey.LeaseConfig{Window: 23 * time.Hour, Stepped: true, Completion: &httpkey.Completion{}, AllowVolatile: "an example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", guard.ProtectFunc((&shopOrders{}).order))
	completer, err := guard.Completer(mux) // the server uses authenticate(mux)
	if err != nil {
		fmt.Println(err)
		return
	}
	go completer.Run(ctx, func(err error) { fmt.Println(err) })
	ask(mux, "8e03978e")
	// Output:
	// charge under 6b81b990
	// mail under 1c931a19
	// 201 receipt 17 (replayed: false)
}
