package semeltest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-go/semel/internal/handlertest"
)

// Provider is a payment provider for tests: an HTTP server that charges for each POST. Of the requests
// with the same Idempotency-Key header only the first is charged; all get the same answer, 200 and the
// number of the charge. A GET with that header returns 200 if there is a charge for the key, otherwise
// 404. During a Run with Handler.Provider it loses answers, times out after a charge, and refuses
// requests; with Forgets it also forgets keys.
type Provider struct {
	// URL is the address of the server.
	URL string
	// Forgets adds the subtest in which the provider has forgotten all keys before a retry. A handler
	// passes it only if it looks for the charge before it charges.
	Forgets bool

	server handlertest.Provider
}

// NewProvider starts a provider and stops it when the test ends.
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
