// Package provider is a payment provider for proofs. The package takes money once for each
// Idempotency-Key, as long as it keeps that key. The package logs every call and every charge
// before it answers. Now and then it fails in the ways in which real providers fail. Its log is
// what a proof compares with: it records every charge, even if the caller never got the answer.
//
//	POST /charges  with an Idempotency-Key (or without: then each call takes money) and a Payment
//	GET  /charges?reference=R  what became of the payment with this reference, an Inquiry
//	GET  /charges?key=K        what became of the key, as long as it is known
//
// A repeated key gets the answer of its charge. With another body it is rejected (422), and
// while its first call is running the answer is 409. When the window ends the key is forgotten,
// and a call with this key takes money again. References are never forgotten, but a second
// charge of a reference is not prevented: callers use keys for that.
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
	// Address is the address to listen at, host:port.
	Address string
	// Log is the file of the log. Entries are appended to an existing file.
	Log string
	// Window is for how long a key is kept, from its first call.
	Window time.Duration
	// Hold is for how long a call gets no answer if its fate is silence.
	Hold time.Duration
	// Fates are the probabilities of fates. The zero value has none.
	Fates Fates
}

// Payment is the body of a call.
type Payment struct {
	Reference string `json:"reference"`
	Card      string `json:"card"`
	Cents     int64  `json:"cents"`
}

// Receipt is the answer to a call that took money, now or earlier.
type Receipt struct {
	Reference string `json:"reference"`
	Charge    int    `json:"charge"`
}

// Inquiry is the answer to a question.
type Inquiry struct {
	// Charges is the number of charges of the reference, or 1 if the key's call took money.
	Charges int `json:"charges"`
	// UnderWay is set while a call is running, which may still take money.
	UnderWay bool `json:"under_way"`
}

// Provider is a provider that does not listen yet.
type Provider struct {
	order Order
	now   func() time.Time
	log   *journal

	mutex      sync.Mutex // guards the fields below
	keys       map[string]*known
	references map[string]*reference
	charges    int
}

// known is the state of a key.
type known struct {
	since     time.Time
	body      [sha256.Size]byte
	reference string
	underWay  bool
	charge    int // 0: no call has taken money yet
}

// reference is the state of a payment's reference.
type reference struct {
	first    time.Time // of its first call
	calls    int
	underWay int
	charges  int
	asked    bool // and was answered
}

// Open creates a provider and reads the entries of its log. now gives the time for keys; nil is
// time.Now.
func Open(o Order, now func() time.Time) (*Provider, error) {
	if o.Window <= 0 {
		return nil, errors.New("provider: Order.Window is missing: set how long a key is kept")
	}
	if now == nil {
		now = time.Now
	}
	p := &Provider{order: o, now: now, keys: map[string]*known{}, references: map[string]*reference{}}
	var err error
	p.log, err = openJournal(o.Log, p.remember)
	return p, err
}

// remember updates the state by an entry of the log.
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

// keyOf returns the state of a key, which is forgotten when its window ends.
func (p *Provider) keyOf(name string, at time.Time) *known {
	k := p.keys[name]
	if k == nil || at.Sub(k.since) >= p.order.Window {
		k = &known{since: at}
		p.keys[name] = k
	}
	return k
}

// Close closes the log, which contains everything that was answered.
func (p *Provider) Close() error { return p.log.close() }

// Serve runs a provider as a process until SIGTERM.
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
