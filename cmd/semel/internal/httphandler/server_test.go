package httphandler

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// secretText is a part of the URL, the body and the responses. No error may contain secretText.
const secretText = "hunter2"

// endpoint is a server that counts calls and connections.
type endpoint struct {
	*httptest.Server
	calls, connections atomic.Int64
}

func newEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := newUnstartedEndpoint(t, answer)
	e.Start()
	return e
}

func newUnstartedEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	e := &endpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.calls.Add(1)
		answer(w, r)
	}))
	e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			e.connections.Add(1)
		}
	}
	e.Config.ErrorLog = discardLogger
	t.Cleanup(e.Close)
	return e
}

// handler returns a handler that calls the endpoint. The configuration of the handler comes from a policy,
// with the given changes.
func (e *endpoint) handler(t *testing.T, changes ...func(*Config)) *Handler {
	t.Helper()
	return handlerOf(t, e.URL, changes...)
}

func handlerOf(t *testing.T, url string, changes ...func(*Config)) *Handler {
	t.Helper()
	c := Config{URL: url + "/charge?token=" + secretText, Timeout: 30 * time.Second, MaxRetryAfter: time.Hour, Connections: 4}
	for _, change := range changes {
		change(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.transport.CloseIdleConnections)
	return h
}

func withTimeout(d time.Duration) func(*Config) { return func(c *Config) { c.Timeout = d } }
func withTLS(t *tls.Config) func(*Config)       { return func(c *Config) { c.TLS = t } }

func message() *semel.Message {
	return semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "order-17"}, []byte(`{"card":"`+secretText+`"}`),
		semel.Header{Name: "ce-type", Value: []byte("order.placed")})
}

// decisionOf returns the decision and the text of a handler's error.
func decisionOf(t *testing.T, err error) (semel.HandlerError, string) {
	t.Helper()
	var h *semel.HandlerError
	switch {
	case err == nil:
		return semel.HandlerError{}, ""
	case !errors.As(err, &h):
		t.Fatalf("an error without a decision: %v", err)
	case strings.Contains(err.Error(), secretText):
		t.Errorf("law 15: the error shows hidden text: %v", err)
	}
	return *h, err.Error()
}

// wantError calls the endpoint and checks the decision and the text of the error.
func (h *Handler) wantError(t *testing.T, decision semel.Decision, words string) {
	t.Helper()
	d, text := decisionOf(t, h.Handle(context.Background(), message()))
	if d.Decision != decision || !strings.Contains(text, words) {
		t.Errorf("the result is %v: %q; want %v: %q", d.Decision, text, decision, words)
	}
}

// rawResponse responds with the given bytes and closes the connection.
func rawResponse(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}
