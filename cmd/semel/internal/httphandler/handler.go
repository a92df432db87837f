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

// Config describes how an endpoint is called.
type Config struct {
	// URL is the endpoint's URL: http or https, without a user.
	URL string
	// Headers are sent with each request. Pass names headers of a message that are sent with its request.
	// Neither may name a header that Allowed or Passable refuses.
	Headers []Header
	Pass    []string
	// NoKey: the endpoint supports no idempotency keys, and none is sent. MayBeLost, with NoKey: a call
	// with unknown outcome is not repeated.
	NoKey, MayBeLost bool
	// Timeout limits one call, from the connection to the end of the response.
	Timeout time.Duration
	// MaxRetryAfter is the longest wait that a response may request; longer waits are shortened to it.
	MaxRetryAfter time.Duration
	// Secrets sign each request; see ParseSecret. Each secret makes one signature.
	Secrets []Secret
	// TLS may be nil; then the system's authorities are used.
	TLS *tls.Config
	// Effects: the endpoint may respond with effects; see Ask.
	Effects bool
	// Intents: each message is an intent, which may have its own key; see semel.Message.IntentKey.
	Intents bool
	// Connections limits the concurrent calls, each on its own connection. A further call waits before its
	// Timeout begins.
	Connections int
}

// Header is one header of a request.
type Header struct{ Name, Value string }

// Handler calls an endpoint. Calls may be concurrent.
type Handler struct {
	config    Config
	host      string
	transport *http.Transport
	turns     chan struct{} // one for each call in progress
}

// New makes a handler without connecting. Its errors do not show the URL.
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
	return &Handler{config: c, host: u.Host, transport: newTransport(c), turns: make(chan struct{}, c.Connections)}, nil
}

// errTimeout is the cause of a call that was cut by its timeout.
var errTimeout = errors.New("the call timed out")

// errNoAnswer reports a status below 200. After 101 another protocol follows, which was not requested
// and which no timeout would end.
var errNoAnswer = errors.New("a status below 200 is not a final response")

// Handle makes one call for m. Its error decides the outcome of the message and says whether the
// outcome of the call is known: see semel.Unknown, semel.RetryAfter and semel.Permanent.
func (h *Handler) Handle(ctx context.Context, m *semel.Message) error {
	_, err := h.Ask(ctx, m)
	return err
}

// Ask is Handle for an endpoint that may respond with effects. Ask returns their text unchanged, nil
// if the response has no body. A 2xx response is an error if its body is not of the effects type, is
// too long, or has effects without Config.Effects; otherwise the effects would be lost silently.
func (h *Handler) Ask(ctx context.Context, m *semel.Message) (effects []byte, err error) {
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		return nil, h.failed(ctx, &call{}, ctx.Err())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.config.Timeout, errTimeout)
	defer cancel()
	c := &call{}
	request, err := h.request(c.traced(ctx), m, time.Now())
	if err != nil {
		return nil, semel.Permanent(err)
	}
	// Not through a http.Client: that would follow redirects, keep cookies, and show
	// the URL in its errors.
	response, err := h.transport.RoundTrip(request)
	if err != nil {
		return nil, h.failed(ctx, c, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 {
		return nil, h.failed(ctx, c, errNoAnswer)
	}
	a, err := read(response)
	if err != nil {
		return nil, h.failed(ctx, c, err)
	}
	if err := h.judge(a, time.Now()); err != nil {
		return nil, err
	}
	return a.body, h.fitting(a)
}
