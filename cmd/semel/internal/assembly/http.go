package assembly

import (
	"cmp"
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/store"
)

// caller is a handler that calls out.
type caller = func(context.Context, consumer.Call, *semel.Message) error

// endpoint makes the handler of a consumer's endpoint. It connects to nobody yet.
func (a *Assembly) endpoint(c *policy.Consumer) (*httphandler.Handler, error) {
	h := c.Handler.HTTP
	at := "consumers." + c.Name + ".handler.http"
	tls, err := security{a.policy, at}.tls(h.TLS)
	if err != nil {
		return nil, err
	}
	config := httphandler.Config{
		URL: h.URL, Pass: h.Pass, NoKey: h.NoKey, MayBeLost: h.MayBeLost != "", Timeout: h.Timeout, MaxRetryAfter: h.MaxRetryAfter, TLS: tls, Connections: cmp.Or(h.Connections, c.Workers),
		Effects: h.Effects != nil, Intents: c.Sends(),
	}
	for _, header := range h.Headers {
		config.Headers = append(config.Headers, httphandler.Header(header))
	}
	if h.Sign != nil {
		for _, text := range h.Sign.Secrets {
			secret, err := httphandler.ParseSecret(text)
			if err != nil {
				return nil, a.policy.Fault(at+".sign.secret", err.Error(), "see docs/policy.md")
			}
			config.Secrets = append(config.Secrets, secret)
		}
	}
	handler, err := httphandler.New(config)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.http: %w", c.Name, err)
	}
	a.logRisk(c)
	return handler, nil
}

// CallKey is the idempotency key that an endpoint gets with the call for a row; empty where
// the policy has no endpoint for it, or one that knows no keys.
func (a *Assembly) CallKey(r store.StoredRow) string {
	c := a.policy.Consumer(r.Key.Consumer)
	if c == nil || c.Handler.HTTP == nil || c.Handler.HTTP.NoKey || r.Message == nil || r.Surrogate {
		return ""
	}
	m := *r.Message
	m.Identity = r.Key
	return httphandler.Key(&m, c.Sends())
}
