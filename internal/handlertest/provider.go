package handlertest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Provider is the handler of a payment provider's HTTP server; see semeltest.Provider.
type Provider struct {
	// Forgets adds the subtest in which the provider has forgotten all keys before a retry.
	Forgets bool
	// Answer returns the media type and the text of the answer to a request with the given key. If Answer is nil, the
	// text is the number of the charge.
	Answer func(key string) (kind, text string)

	mu      sync.Mutex // protects the fields below
	charges []charge
	known   map[string]int // charges by key, without forgotten keys; nil before the first charge
	next    misfortune
}

type charge struct{ key, body string }

// misfortune is a fault that happens to the next request.
type misfortune string

const (
	none       misfortune = ""
	loseAnswer misfortune = "it charged and closed the connection without an answer"
	timeOut    misfortune = "it charged and answered 504"
	refuse     misfortune = "it answered 503 without a charge"
)

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	key := r.Header.Get("Idempotency-Key")
	status, text := p.answer(r.Method, key, string(body))
	switch {
	case status == 0:
		panic(http.ErrAbortHandler)
	case status == http.StatusOK && r.Method == http.MethodPost && p.Answer != nil:
		kind, own := p.Answer(key)
		w.Header().Set("Content-Type", kind)
		text = own
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// answer returns the HTTP status of the response, or 0 for no response, and the text.
func (p *Provider) answer(method, key, body string) (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if method != http.MethodPost {
		if !slices.ContainsFunc(p.charges, func(c charge) bool { return c.key == key }) {
			return http.StatusNotFound, ""
		}
		return http.StatusOK, ""
	}
	bad := p.next
	p.next = none
	if bad == refuse {
		return http.StatusServiceUnavailable, "try again"
	}
	n, known := p.known[key]
	if !known || key == "" {
		p.charges = append(p.charges, charge{key, body})
		n = len(p.charges)
		if p.known == nil {
			p.known = map[string]int{}
		}
		p.known[key] = n
	}
	switch bad {
	case loseAnswer:
		return 0, ""
	case timeOut:
		return http.StatusGatewayTimeout, "try again"
	}
	return http.StatusOK, fmt.Sprintf("charge %d", n)
}

// ledger returns a sorted list of all charges.
func (p *Provider) ledger() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, c := range p.charges {
		lines = append(lines, c.key+" "+c.body)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// keyless returns an error if there was a charge without an idempotency key.
func (p *Provider) keyless() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.charges {
		if c.key == "" {
			return fmt.Errorf(saysKeyless, c.body)
		}
	}
	return nil
}

func (p *Provider) set(next misfortune) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = next
}

func (p *Provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}

// failProviderCall delivers each message while one call to the provider fails.
func failProviderCall[Tx any](s *session[Tx], bad misfortune) error {
	w := s.world()
	if w.Provider == nil {
		return &NotRun{"Handler.Provider is not set"}
	}
	err := eachMessage(w, func(i int) error {
		w.Provider.set(bad)
		defer w.Provider.set(none)
		return w.retried(i)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysProvider, bad)
}

// retried delivers message i until the message is acked.
func (w *world[Tx]) retried(i int) error {
	var err error
	for range tries {
		if err = w.deliverAndCheck(i, acks()...); err == nil {
			return nil
		}
	}
	return err
}

func forgotten[Tx any](s *session[Tx]) error {
	w := s.world()
	switch {
	case w.Provider == nil:
		return &NotRun{"Handler.Provider is not set"}
	case !w.Provider.Forgets:
		return &NotRun{"Provider.Forgets is not set"}
	}
	err := eachMessage(w, func(i int) error {
		failOnce(w, afterHandle, errInjected)
		_, err := w.deliverOne(i)
		w.Provider.forget()
		return errors.Join(err, w.retried(i))
	})
	if err != nil {
		return err
	}
	return s.same(w, saysForgotten)
}
