package assembly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/internal/worker"
)

// answersWithEffects reports whether the handler calls an endpoint that answers with effects.
func (t *Trial) answersWithEffects() bool {
	h := t.Consumer.Handler.HTTP
	return h != nil && h.Effects != nil
}

// onlyCalls reports whether the handler calls an endpoint and writes nothing in the store.
func (t *Trial) onlyCalls() bool { return t.Consumer.Handler.HTTP != nil && !t.answersWithEffects() }

// ReadAnswers reads the answers of the endpoint from a file: one answer a line, in the order of Messages. The parameter
// name is the name of the file; empty if there is no file.
func (t *Trial) ReadAnswers(name string) error {
	switch {
	case name == "" && t.answersWithEffects():
		return errors.New("its endpoint answers with effects and is not called; " +
			"give samples: --answers FILE, with one answer a line, in the order of the messages")
	case name == "":
		return nil
	case !t.answersWithEffects():
		return errors.New("--answers: its handler has no effects in answers; leave the flag out")
	}
	text, err := shape.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--answers: %w; name a readable file with one answer a line", err)
	}
	t.Answers = strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(t.Answers) != len(t.Messages) {
		return fmt.Errorf("--answers: %s has %d lines for %d messages with different ids; give one answer a line, in the order of the messages",
			name, len(t.Answers), len(t.Messages))
	}
	return nil
}

// newProviderCall returns the function that calls a provider in place of the endpoint, and applies its answer.
func newProviderCall[Tx any](h handlertest.T, t *Trial, a *Assembly, d access[Tx], p *handlertest.Provider, w *consumer.Intents[Tx]) (handlerFunc[Tx], error) {
	of, handler := *t.Consumer, *t.Consumer.Handler.HTTP
	handler.URL, handler.TLS, of.Handler.HTTP = serve(h, p), nil, &handler
	endpoint, err := a.endpoint(&of)
	if err != nil {
		return nil, err
	}
	if !t.answersWithEffects() {
		return func(ctx context.Context, _ Tx, m *semel.Message) error { return endpoint.Handle(ctx, m) }, nil
	}
	effects, err := a.effects(h.Context(), &of, a.Stores[0])
	if err != nil {
		return nil, err
	}
	ask := newAsker(endpoint, effects)
	write := newAnswerHandler(func(ctx context.Context, tx Tx, answer *sqlhandler.Answer, m *semel.Message) error {
		return d.apply(effects, ctx, tx, answer, m)
	}, w)
	return func(ctx context.Context, tx Tx, m *semel.Message) error {
		answer, err := ask(ctx, m)
		if err != nil {
			return err
		}
		return write(ctx, tx, answer, m)
	}, nil
}

// provider returns a provider that responds to each message with the message's line in t.Answers.
func (t *Trial) provider() *handlertest.Provider {
	p := &handlertest.Provider{}
	if !t.answersWithEffects() {
		return p
	}
	byKey := map[string]string{}
	for i, m := range t.Messages {
		named := *m
		named.Identity, _ = t.identityOf(m) // Read has already found this identity
		byKey[httphandler.Key(&named, false)] = t.Answers[i]
	}
	p.Answer = func(key string) (kind, text string) { return httphandler.EffectsType, byKey[key] }
	return p
}

// serve starts an HTTP server on this machine for one subtest, and returns its URL.
func serve(h handlertest.T, p *handlertest.Provider) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.Fatal(err)
	}
	var group worker.Group
	server := &http.Server{Handler: p}
	group.Go(func() { _ = server.Serve(listener) }) // always http.ErrServerClosed, after Close
	h.Cleanup(func() {
		_ = server.Close() // the test is over
		group.Wait()
	})
	return "http://" + listener.Addr().String()
}
