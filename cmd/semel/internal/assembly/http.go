package assembly

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
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
		URL: h.URL, Pass: h.Pass, NoKey: h.NoKey, MayBeLost: h.MayBeLost != "", Timeout: h.Timeout, MaxRetryAfter: h.MaxRetryAfter, TLS: tls, Connections: c.Workers,
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
	a.tellRisk(c)
	return handler, nil
}
