package assembly

import (
	"context"
	"log/slog"

	"github.com/semel-go/semel/cmd/semel/internal/hookserver"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/webhook"
)

// hookSource is a webhook source with the HTTP server of its address. A run opens the server at the
// start, so that the run fails immediately if the address is in use. Commands that only need the source's
// settings do not listen.
type hookSource struct {
	*webhook.Receiver
	assembly *Assembly
	hook     *policy.Webhook
	logger   *slog.Logger
	opened   bool // set when the source is created, later used only by Fetch
}

func (a *Assembly) webhookSource(c *policy.Consumer, s *policy.Source) (source.Source, error) {
	config, err := s.Webhook.Config(s.Name)
	if err != nil {
		return nil, err
	}
	logger := a.options.Logger.With(slog.String("consumer", c.Name), slog.String("source", s.Name))
	config.Observe = func(o webhook.Observation) {
		if o.Status/100 != 2 {
			logger.Debug("a webhook was refused", "fate", o.Fate.String(), "status", o.Status, "bytes", o.Bytes)
		}
	}
	r, err := webhook.New(config)
	return &hookSource{Receiver: r, assembly: a, hook: s.Webhook, logger: logger}, err
}

// Fetch implements source.Source.
func (h *hookSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if err := h.open(); err != nil { // the server is not open if the consumer has switched to another generation
		return nil, err
	}
	return h.Receiver.Fetch(ctx, most)
}

func (h *hookSource) open() error {
	if h.opened {
		return nil
	}
	server, err := h.assembly.hookServer(h.hook)
	if err != nil {
		return err
	}
	server.Handle(h.hook.Path, h.Receiver)
	h.opened = true
	h.logger.Info("webhooks are received", "address", server.Address(), "path", h.hook.Path, "scheme", h.hook.Scheme)
	return nil
}

// hookServer returns the HTTP server of an address. Several sources may share an address.
func (a *Assembly) hookServer(w *policy.Webhook) (*hookserver.Server, error) {
	a.hooksMutex.Lock()
	defer a.hooksMutex.Unlock()
	if s := a.hookServers[w.Listen]; s != nil {
		return s, nil
	}
	o := hookserver.Options{Address: w.Listen, Connections: w.Connections, Logger: a.options.Logger}
	if w.TLS != nil {
		o.Cert, o.Key = w.TLS.Cert, w.TLS.Key
	}
	s, err := hookserver.Open(o)
	if err != nil {
		return nil, err
	}
	if a.hookServers == nil {
		a.hookServers = map[string]*hookserver.Server{}
	}
	a.hookServers[w.Listen] = s
	return s, nil
}

func (a *Assembly) closeHooks() {
	a.hooksMutex.Lock()
	defer a.hooksMutex.Unlock()
	for _, s := range a.hookServers {
		s.Close()
	}
}

// Requests implements metrics.Consumer.
func (r *Runner) Requests() *metrics.Requests {
	if h, is := r.source.(interface{ requests() *metrics.Requests }); is {
		return h.requests()
	}
	return nil
}

func (t *generationalConsumer) requests() *metrics.Requests {
	if h, is := t.current().source.(*hookSource); is {
		return h.requests()
	}
	return nil
}

func (h *hookSource) requests() *metrics.Requests {
	out := &metrics.Requests{By: map[string]uint64{}, EqualBodies: h.EqualBodies()}
	for _, fate := range webhook.Fates() {
		out.By[fate.String()] = h.Count(fate)
	}
	return out
}
