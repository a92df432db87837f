package semeltest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-go/semel/internal/handlertest"
)

// Provider is a payment provider for tests: an HTTP server that makes a charge for each POST. If several requests have
// the same Idempotency-Key header, only the first is charged, and all get the same response: 200 and the number of the
// charge. A GET with an Idempotency-Key header returns 200 if there is a charge for the key, and 404 if there is none.
// During a Run with Handler.Provider, the server loses answers, times out after a charge, and refuses requests. With
// Forgets, the server also forgets keys.
type Provider struct {
	// URL is the address of the server.
	URL string
	// Forgets adds a subtest in which the provider has forgotten all keys before a retry. A handler passes the
	// subtest only if it asks for the charge before it makes a charge.
	Forgets bool

	server handlertest.Provider
}

// NewProvider starts a Provider. The Provider stops when the test ends.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.server.ServeHTTP(w, r) }
