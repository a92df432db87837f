package assembly

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
)

func TestThePolicySetsTheDurabilityOfKeys(t *testing.T) {
	const text = `version: 1
stores: {keys: {redis: {addresses: "127.0.0.1:6379", persistence: PERSISTENCE, because: "a mail twice does no harm"}}}
sources: {orders: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  mail:
    from: orders
    store: keys
    strategy: lease
    identity: {id: id}
    retention: {keep: 30d, delay: 2h}
    lanes: none
    on_conflict: halt
    on_bad_identity: halt
    on_store_down: apply
    effect: {kind: projection, says: "a search index"}
    retry: {on_exhausted: halt}
    handler: {http: {url: "https://mail.example/send"}}
`
	for persistence, bearable := range map[string]string{"volatile": "a mail twice does no harm", "durable": "", "seconds": ""} {
		t.Run("B11_J4_in_a_store_that_is_"+persistence, func(t *testing.T) {
			p, faults := policy.Parse("semel.yaml", []byte(strings.Replace(text, "PERSISTENCE", persistence, 1)), func(string) (string, bool) { return "", false })
			if p == nil {
				t.Fatal(faults)
			}
			want := consumer.KeyPolicy{Keep: 30 * 24 * time.Hour, Delay: 2 * time.Hour, AllowVolatile: bearable, FailOpen: "the effect is a projection: a search index"}
			if got := keyPolicy(p.Consumers[0], p.Stores[0]); got != want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestEachWorkerCanMakeACall(t *testing.T) {
	const workers = 16 // the default number of workers in a policy
	var came atomic.Int64
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if came.Add(1) == workers {
			close(all)
		}
		select {
		case <-all:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done(): // the caller has waited too long for the other calls
		}
	}))
	defer server.Close()
	p := parseEndpointPolicy(t, t.TempDir(), "        timeout: 20s\n", server.URL)
	endpoint, err := (&Assembly{policy: p}).endpoint(p.Consumers[0])
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range workers {
		calls.Go(func() {
			if err := endpoint.Handle(t.Context(), semel.NewMessage(semel.Key{Consumer: "billing", ID: "17"}, nil)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}
