package assembly

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/store"
)

// callingPolicy is a policy with a consumer and a sender that both call an HTTP endpoint.
const callingPolicy = `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources: {orders: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  billing:
    from: orders
    store: shop
    strategy: lease
    identity: {id: id}
    alerts: {pending_age: 1m}
    on_precondition: discard
    handler:
      http:
        url: "${URL}"
        effects:
          intents: mailer
          statements:
            as_said: {sql: "delete from t", rows: 1, otherwise: park}
            as_usual: {sql: "delete from t", rows: 1}
  mailer:
    store: shop
    strategy: lease
    alerts: {pending_age: 1m}
    handler: {http: {url: "${URL}"}}
`

func callingPolicyAt(t *testing.T, url string) *policy.Policy {
	t.Helper()
	p, faults := policy.Parse("semel.yaml", []byte(callingPolicy), func(string) (string, bool) { return url, true })
	if p == nil {
		t.Fatal(faults)
	}
	return p
}

func TestTheDisplayedKeyIsTheSentKey(t *testing.T) {
	keys := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	a := &Assembly{policy: callingPolicyAt(t, server.URL)}
	for _, c := range a.policy.Consumers {
		t.Run("E3_of_"+c.Name, func(t *testing.T) {
			endpoint, err := a.endpoint(c)
			if err != nil {
				t.Fatal(err)
			}
			m := semel.NewMessage(semel.Key{Consumer: c.Name, Source: "orders", ID: "17"}, nil, semel.Header{Name: semelheader.IntentKey, Value: []byte("order-17")})
			if err := endpoint.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if sent, shown := <-keys, a.CallKey(store.StoredRow{Key: m.Identity, Message: m}); sent == "" || sent != shown || c.Sends() != (sent == "order-17") {
				t.Errorf("%q is sent, but %q is shown; only an intent has a key of its own", sent, shown)
			}
		})
	}
}

func TestThePolicyDecidesAboutEffectsThatChangeNothing(t *testing.T) {
	want := map[string]sqlhandler.Otherwise{"as_said": sqlhandler.OtherwisePark, "as_usual": sqlhandler.OtherwiseUnmet}
	all := namedStatements(callingPolicyAt(t, "http://127.0.0.1:1").Consumers[0])
	for _, s := range all {
		if s.Statement.Otherwise != want[s.Name] {
			t.Errorf("K10: %s: %v", s.Name, s.Statement.Otherwise)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d statements", len(all))
	}
}
