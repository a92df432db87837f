// Package provider is a payment provider for proofs: it takes money once for each
// Idempotency-Key for as long as it knows that key, writes every call and every charge
// down before it answers, and now and then answers as providers do in their worst nights.
// Its log is the truth of a proof: what was taken, whatever anybody heard of it.
//
//	POST /charges  with an Idempotency-Key (or without: then each call takes money) and a Payment
//	GET  /charges?reference=R  what became of the payment with this reference, an Inquiry
//	GET  /charges?key=K        what became of the key, as long as it is known
//
// A key that comes again has its charge's answer; with another body it is refused (422);
// while its first call is under way the answer is 409. When the window is over the key is
// forgotten, and a call under it takes money again. References are never forgotten, but
// nothing keeps two charges of one reference apart: that is what callers have keys for.
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

// Order says what a provider is like.
type Order struct {
	// Address is where it listens, host:port.
	Address string
	// Log is the file of its entries; it goes on with one that is there.
	Log string
	// Window is for how long it knows a key, from the first call under it.
	Window time.Duration
	// Hold is how long a call is left without an answer where the fate is silence.
	Hold time.Duration
	// Fates say what happens to calls; none happens to its zero value.
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
	// Charges are of the reference, or 1 if the key's call took money.
	Charges int `json:"charges"`
	// UnderWay says that a call is: it may yet take money.
	UnderWay bool `json:"under_way"`
}

// Provider is a provider that listens to nobody yet.
type Provider struct {
	order Order
	now   func() time.Time
	log   *journal

	mutex      sync.Mutex // guards what follows
	keys       map[string]*known
	references map[string]*reference
	charges    int
}

// known is what is kept of a key.
type known struct {
	since     time.Time
	body      [sha256.Size]byte
	reference string
	underWay  bool
	charge    int // 0: no call has taken money yet
}

// reference is what is kept of a payment's reference.
type reference struct {
	first    time.Time // of its first call
	calls    int
	underWay int
	charges  int
	asked    bool // and was answered
}

// Open reads the log, from which everything is known that was written before. The
// times of keys count by now; nil is time.Now.
func Open(o Order, now func() time.Time) (*Provider, error) {
	if o.Window <= 0 {
		return nil, errors.New("provider: Order.Window is missing: how long is a key known?")
	}
	if now == nil {
		now = time.Now
	}
	p := &Provider{order: o, now: now, keys: map[string]*known{}, references: map[string]*reference{}}
	var err error
	p.log, err = openJournal(o.Log, p.remember)
	return p, err
}

// remember takes up what an entry of the log says.
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

// keyOf is what is known of a key, which is forgotten when its window is over.
func (p *Provider) keyOf(name string, at time.Time) *known {
	k := p.keys[name]
	if k == nil || at.Sub(k.since) >= p.order.Window {
		k = &known{since: at}
		p.keys[name] = k
	}
	return k
}

// Close ends it; everything that was answered is in the log.
func (p *Provider) Close() error { return p.log.close() }

// Serve is a provider as a process: it listens until SIGTERM.
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
