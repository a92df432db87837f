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

// Config says how an endpoint is called.
type Config struct {
	// URL is the endpoint's: http or https, without a user.
	URL string
	// Headers are sent with each request. Pass names headers of a message that are
	// sent with its request. Neither may name one that Allowed or Passable refuses.
	Headers []Header
	Pass    []string
	// NoKey: the other side knows no keys, and none is sent. MayBeLost, with it, says that a
	// call whose outcome is unknown is not made again.
	NoKey, MayBeLost bool
	// Timeout is of one call, from the connection to the end of the answer.
	Timeout time.Duration
	// MaxRetryAfter is the longest wait that an answer may ask for; a longer one is
	// cut to it.
	MaxRetryAfter time.Duration
	// Secrets sign each request; see ParseSecret. Several make a signature each.
	Secrets []Secret
	// TLS may be nil, for the system's authorities.
	TLS *tls.Config
	// Effects: the endpoint may answer with effects; see Ask.
	Effects bool
	// Intents: each message is an intent, which may have a key of its own; see
	// semel.Message.IntentKey.
	Intents bool
	// Connections is how many calls are made at once, each over one of its own; whoever
	// comes then waits for its turn before its Timeout begins.
	Connections int
}

// Header is one header of a request.
type Header struct{ Name, Value string }

// Handler calls an endpoint. Its calls may run beside one another.
type Handler struct {
	config    Config
	host      string
	transport *http.Transport
	turns     chan struct{} // one for each call under way
}

// New makes a handler; it connects to nobody yet. Its errors show nothing of the URL.
func New(c Config) (*Handler, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the URL is none of http or https with a host")
	case u.User != nil:
		return nil, errors.New("the URL has a user in it")
	case c.Timeout <= 0 || c.Connections <= 0:
		return nil, fmt.Errorf("a time-out of %v and %d connections: both must be more than 0", c.Timeout, c.Connections)
	}
	return &Handler{config: c, host: u.Host, transport: newTransport(c), turns: make(chan struct{}, c.Connections)}, nil
}

// errTimeout is the cause of a call that was cut because its time was over.
var errTimeout = errors.New("the time of the call is over")

// errNoAnswer is of a status below 200. What follows 101 is another protocol: nobody asked
// for it, and no time-out would end the reading of it.
var errNoAnswer = errors.New("a status below 200 is no answer")

// Handle makes one call for m. The error, if any, says what becomes of the message, and
// whether it is known what became of the call: see semel.Unknown, semel.RetryAfter and
// semel.Permanent.
func (h *Handler) Handle(ctx context.Context, m *semel.Message) error {
	_, err := h.Ask(ctx, m)
	return err
}

// Ask is Handle for an endpoint that may answer with effects, and returns their text as
// it came, nil if it answered with no body. An answer of 2xx with a body that is no
// effects, or too long, or with effects where Config.Effects is not set, is an error: what
// the handler wanted done would be lost without a word.
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
