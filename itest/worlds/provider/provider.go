// Package provider is a payment provider for fault tests. The provider charges once for each Idempotency-Key, as long
// as it remembers the key. The provider logs every call and every charge before it answers. Now and then the provider
// fails in the ways in which real providers fail. A fault test compares its results with the provider's log, which has
// every charge, even if the caller never got the answer.
//
//	POST /charges  with a Payment and an Idempotency-Key (without a key each call charges)
//	GET  /charges?reference=R  returns an Inquiry about the payment with this reference
//	GET  /charges?key=K        returns an Inquiry about the key, as long as it is remembered
//
// A repeated key gets the answer of its first charge. If the body of a repeated key differs, the call is rejected with
// 422. While the first call is running, the answer is 409. When the window ends, the provider forgets the key, and a
// call with this key charges again. The provider never forgets a reference, but does not prevent a second charge of a
// reference: only keys prevent a second charge.
package provider

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Order is the configuration of a provider.
type Order struct {
	// Address is the address at which the provider listens, in the form host:port.
	Address string
	// Log is the path of the log. The provider appends to an existing file.
	Log string
	// Window is the time after the first call for which the provider remembers a key.
	Window time.Duration
	// Hold is the time for which an unanswered call (Silent or ChargedSilent) stays open.
	Hold time.Duration
	// Fates has the probabilities of failures. With the zero value, every call gets its answer.
	Fates Fates
}

// Payment is the body of a call.
type Payment struct {
	Reference string `json:"reference"`
	Card      string `json:"card"`
	Cents     int64  `json:"cents"`
}

// Receipt is the answer to a call that charged the payment, now or earlier.
type Receipt struct {
	Reference string `json:"reference"`
	Charge    int    `json:"charge"`
}

// Inquiry is the answer to a query about a key or a reference.
type Inquiry struct {
	// Charges is the number of charges of the reference. For a key, Charges is 1 if a call with the key charged the
	// payment.
	Charges int `json:"charges"`
	// UnderWay is true while a call is running that may still charge the payment.
	UnderWay bool `json:"under_way"`
}

// Provider is a provider without a listener. The method ServeHTTP handles requests.
type Provider struct {
	order Order
	now   func() time.Time
	log   *journal

	mutex      sync.Mutex // mutex guards the fields below
	keys       map[string]*keyRecord
	references map[string]*reference
	charges    int
}

// keyRecord is the data that the provider remembers about a key.
type keyRecord struct {
	since     time.Time
	body      [sha256.Size]byte
	reference string
	underWay  bool
	charge    int // number of the charge; 0 if no call has charged yet
}

// reference is the data that the provider remembers about a payment's reference.
type reference struct {
	first    time.Time // time of the first call
	calls    int
	underWay int
	charges  int
	asked    bool // a query about the reference was answered
}

// Open creates a provider and reads the entries of its log. The function now returns the time for keys; nil means
// time.Now.
func Open(o Order, now func() time.Time) (*Provider, error) {
	if o.Window <= 0 {
		return nil, errors.New("provider: Order.Window is missing: set how long a key is kept")
	}
	if now == nil {
		now = time.Now
	}
	p := &Provider{order: o, now: now, keys: map[string]*keyRecord{}, references: map[string]*reference{}}
	var err error
	p.log, err = openJournal(o.Log, p.remember)
	return p, err
}

// remember updates the state from an entry of the log.
func (p *Provider) remember(e Entry) {
	r := p.referenceOf(e.Reference, e.At)
	switch e.Kind {
	case Asked:
		r.asked = true
	case Called:
		if e.Status == 0 {
			r.calls++
		}
		if e.Key != "" {
			p.keyOf(e.Key, e.At).reference = e.Reference
		}
	case Charged:
		p.charges++
		r.charges++
		if e.Key != "" {
			k := p.keyOf(e.Key, e.At)
			k.charge, k.body, k.reference = p.charges, e.Body, e.Reference
		}
	}
}

func (p *Provider) referenceOf(name string, at time.Time) *reference {
	if p.references[name] == nil {
		p.references[name] = &reference{first: at}
	}
	return p.references[name]
}

// keyOf returns the state of a key. A key whose window has ended gets a new state.
func (p *Provider) keyOf(name string, at time.Time) *keyRecord {
	k := p.keys[name]
	if k == nil || at.Sub(k.since) >= p.order.Window {
		k = &keyRecord{since: at}
		p.keys[name] = k
	}
	return k
}

// Close closes the log. The log contains every call that was answered.
func (p *Provider) Close() error { return p.log.close() }

// Serve runs a provider in this process until SIGTERM.
func Serve(o Order) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	p, err := Open(o, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return p.Close()
}
