package semeltest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Provider is a payment provider for tests: an HTTP server that makes a charge for each POST. If several
// requests have the same Idempotency-Key header, only the first is charged. All of them get the same answer:
// 200 and the number of the charge. A GET with that header returns 200 if there is a charge for the key,
// otherwise 404. During a Run with Handler.Provider, the server loses answers, times out after a charge, and
// refuses requests. With Forgets it also forgets keys.
type Provider struct {
	// URL is the address of the server.
	URL string
	// Forgets adds a subtest in which the provider has forgotten all keys before a retry. A handler passes the
	// subtest only if it asks for the charge before it makes a charge.
	Forgets bool

	mu      sync.Mutex // guards the fields below
	charges []charge
	known   map[string]int // charges by key, except those of forgotten keys
	next    misfortune
}

type charge struct{ key, body string }

// misfortune is the fault that happens to the next request.
type misfortune string

const (
	none       misfortune = ""
	loseAnswer misfortune = "it charged and closed the connection without an answer"
	timeOut    misfortune = "it charged and answered 504"
	refuse     misfortune = "it answered 503 without a charge"
)

// NewProvider starts a Provider. The Provider stops when the test ends.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{known: map[string]int{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	status, text := p.answer(r.Method, r.Header.Get("Idempotency-Key"), string(body))
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// answer returns the status and the text of an answer. Status 0 means that there is no answer.
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

// ledger lists all charges, sorted.
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

// keyless returns an error if a charge has no key.
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

// provided delivers each message with one failing call to the provider.
func provided[Tx any](s *session[Tx], bad misfortune) error {
	w := s.world()
	if w.Provider == nil {
		return &notRun{"Handler.Provider is not set"}
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

// retried delivers message i again and again until it is acked.
func (w *world[Tx]) retried(i int) error {
	var err error
	for range tries {
		if err = w.applies(i, acks()...); err == nil {
			return nil
		}
	}
	return err
}

func forgotten[Tx any](s *session[Tx]) error {
	w := s.world()
	switch {
	case w.Provider == nil:
		return &notRun{"Handler.Provider is not set"}
	case !w.Provider.Forgets:
		return &notRun{"Provider.Forgets is not set"}
	}
	err := eachMessage(w, func(i int) error {
		failOnce(w, afterHandle, errInjected)
		_, err := w.one(i)
		w.Provider.forget()
		return errors.Join(err, w.retried(i))
	})
	if err != nil {
		return err
	}
	return s.same(w, saysForgotten)
}
