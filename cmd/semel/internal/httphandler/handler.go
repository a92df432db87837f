package httphandler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/semel-go/semel"
)

// Config describes how to call an endpoint.
type Config struct {
	// URL is an http or https URL without user and password.
	URL string
	// Headers are sent with each request. The field Pass lists message headers that are copied to the request.
	// The function Allowed must accept each header, and the function Passable must accept each name in Pass.
	Headers []Header
	Pass    []string
	// NoKey sends no idempotency key, because the endpoint does not support keys. MayBeLost can be set with
	// NoKey: a call with an unknown outcome is then not repeated.
	NoKey, MayBeLost bool
	// Timeout is the maximum duration of a call, from opening the connection to the end of the response.
	Timeout time.Duration
	// MaxRetryAfter is the maximum wait that a Retry-After header can request. If the header requests a longer
	// wait, the wait is shortened to MaxRetryAfter.
	MaxRetryAfter time.Duration
	// Secrets sign each request; see ParseSecret. Each secret adds one signature.
	Secrets []Secret
	// TLS has the TLS settings; nil for the certificate authorities of the system.
	TLS *tls.Config
	// Effects means that the endpoint can respond with effects; see Ask.
	Effects bool
	// Intents means that each message is an intent. An intent can have its own idempotency key; see
	// semel.Message.IntentKey.
	Intents bool
	// Connections is the maximum number of concurrent calls. Each call uses its own connection. A call
	// beyond the maximum waits; its Timeout starts after the wait.
	Connections int
}

// Header is one header of a request.
type Header struct{ Name, Value string }

// Handler calls an endpoint. Handler is safe for concurrent use.
type Handler struct {
	config    Config
	host      string
	transport *http.Transport
	callSlots chan struct{} // has one element per call in progress
}

// New returns a handler without connecting to the endpoint. Errors do not contain the URL.
func New(c Config) (*Handler, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the URL must be http or https with a host")
	case u.User != nil:
		return nil, errors.New("the URL must not contain a user")
	case c.Timeout <= 0 || c.Connections <= 0:
		return nil, fmt.Errorf("timeout is %v and connections is %d: both must be more than 0", c.Timeout, c.Connections)
	}
	return &Handler{config: c, host: u.Host, transport: newTransport(c), callSlots: make(chan struct{}, c.Connections)}, nil
}

// errTimeout is the cause of a call that exceeded its timeout.
var errTimeout = errors.New("the call timed out")

// errNoAnswer is the error for a final response with a status below 200. After status 101, the server would
// switch to a protocol that Semel did not request, and no timeout would end the connection.
var errNoAnswer = errors.New("a status below 200 is not a final response")

// Handle makes one call for m. The error decides the outcome of the message, and says whether the outcome of
// the call is known; see semel.Unknown, semel.RetryAfter and semel.Permanent.
func (h *Handler) Handle(ctx context.Context, m *semel.Message) error {
	_, err := h.Ask(ctx, m)
	return err
}

// Ask makes one call like Handle, for an endpoint that can respond with effects. Ask returns the body of the
// response unchanged, or nil if the response has no body. Effects must not be lost silently. Ask therefore
// returns an error for a 2xx response whose body is too long or has another media type, and for effects
// without Config.Effects.
func (h *Handler) Ask(ctx context.Context, m *semel.Message) (effects []byte, err error) {
	select {
	case h.callSlots <- struct{}{}:
		defer func() { <-h.callSlots }()
	case <-ctx.Done():
		return nil, h.failureResult(ctx, &call{}, ctx.Err())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.config.Timeout, errTimeout)
	defer cancel()
	c := &call{}
	request, err := h.request(c.withTrace(ctx), m, time.Now())
	if err != nil {
		return nil, semel.Permanent(err)
	}
	// A http.Client would follow redirects, keep cookies and show the URL in errors, so the transport is
	// called directly.
	response, err := h.transport.RoundTrip(request)
	if err != nil {
		return nil, h.failureResult(ctx, c, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 {
		return nil, h.failureResult(ctx, c, errNoAnswer)
	}
	a, err := read(response)
	if err != nil {
		return nil, h.failureResult(ctx, c, err)
	}
	if err := h.classifyAnswer(a, time.Now()); err != nil {
		return nil, err
	}
	return a.body, h.checkResponse(a)
}
