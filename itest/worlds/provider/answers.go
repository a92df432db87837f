package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/charges":
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		p.charge(w, r)
	case r.Method == http.MethodGet:
		p.ask(w, r)
	default:
		http.Error(w, "POST or GET", http.StatusMethodNotAllowed)
	}
}

// call is a call that the provider is processing.
type call struct {
	key       string
	payment   Payment
	body      [sha256.Size]byte
	fate      Fate
	charge    int // number of the charge whose receipt is the answer; 0 if the answer has no receipt
	status    int // status of an answer without a receipt
	reference *reference
	known     *keyRecord // state of the call's key; nil without a key
}

func (p *Provider) charge(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	c := call{key: r.Header.Get("Idempotency-Key"), body: sha256.Sum256(body)}
	if err == nil {
		err = json.Unmarshal(body, &c.payment)
	}
	if err != nil || c.payment.Reference == "" || c.payment.Cents <= 0 {
		http.Error(w, "the body is not a payment", http.StatusBadRequest)
		return
	}
	if err := p.begin(&c); err != nil {
		http.Error(w, "the log cannot be written", http.StatusInternalServerError)
		return
	}
	err = p.log.sync() // the charge must be on disk even if the caller does not get the answer
	p.end(&c)
	if err != nil {
		http.Error(w, "the log cannot be written", http.StatusInternalServerError)
		return
	}
	p.answer(r.Context(), w, &c)
}

// begin chooses the fate of a call (answered, lost, charged and lost, …), and logs the call.
func (p *Provider) begin(c *call) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	c.reference = p.referenceOf(c.payment.Reference, now)
	if c.key != "" {
		c.known = p.keyOf(c.key, now)
	}
	entry := Entry{Kind: Called, At: now, Key: c.key, Reference: c.payment.Reference}
	if c.status = c.refusal(); c.status != 0 {
		entry.Status = c.status
	} else {
		c.fate = p.order.Fates.nextFate(c.payment.Reference, c.reference, now, p.order.Window)
		entry.Fate = c.fate
		c.reference.calls++
		if c.known != nil && c.known.charge != 0 {
			c.charge, entry.Known = c.known.charge, c.fate == Well
		}
	}
	if err := p.log.add(entry); err != nil || c.status != 0 {
		return err
	}
	c.mark(true)
	if c.charge != 0 || !c.fate.chargesPayment() {
		return nil
	}
	return p.take(c, now)
}

// refusal returns the status with which a call is rejected because of its key, or 0.
func (c *call) refusal() int {
	switch k := c.known; {
	case k == nil:
		return 0
	case k.reference == "":
		k.reference, k.body = c.payment.Reference, c.body
	case k.underWay:
		return http.StatusConflict
	case k.charge != 0 && k.body != c.body:
		return http.StatusUnprocessableEntity
	}
	return 0
}

// take charges the payment and logs the charge. The caller holds the mutex.
func (p *Provider) take(c *call, now time.Time) error {
	err := p.log.add(Entry{Kind: Charged, At: now, Key: c.key, Reference: c.payment.Reference, Body: c.body})
	if err != nil {
		return err
	}
	p.charges++
	c.charge = p.charges
	c.reference.charges++
	if c.known != nil {
		c.known.charge, c.known.body = c.charge, c.body
	}
	return nil
}

// mark records that the call is running or has ended. The caller holds the mutex.
func (c *call) mark(begins bool) {
	if c.known != nil {
		c.known.underWay = begins
	}
	if begins {
		c.reference.underWay++
	} else {
		c.reference.underWay--
	}
}

func (p *Provider) end(c *call) {
	if c.status != 0 {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	c.mark(false)
}

// answer sends the response that the fate of the call requires.
func (p *Provider) answer(ctx context.Context, w http.ResponseWriter, c *call) {
	switch {
	case c.status != 0:
		http.Error(w, http.StatusText(c.status), c.status)
		return
	case c.fate == Well:
		writeJSON(w, Receipt{Reference: c.payment.Reference, Charge: c.charge})
		return
	}
	switch c.fate {
	case Silent, ChargedSilent:
		wait(ctx, p.order.Hold)
	case Refused:
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	case ChargedFailed:
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	case TooMany:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
		return
	case ChargedGarbage:
		_, _ = w.Write([]byte("<html>\x00{\"charge\":"))
		return
	}
	panic(http.ErrAbortHandler) // makes the HTTP server cut the connection
}

// wait waits for the duration d, or until the caller has closed the connection.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// ask answers a query about a key or a reference.
func (p *Provider) ask(w http.ResponseWriter, r *http.Request) {
	key, name := r.URL.Query().Get("key"), r.URL.Query().Get("reference")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	if key != "" {
		k := p.keys[key]
		if k == nil || now.Sub(k.since) >= p.order.Window {
			http.Error(w, "the key is not known", http.StatusNotFound)
			return
		}
		writeJSON(w, Inquiry{Charges: min(k.charge, 1), UnderWay: k.underWay})
		return
	}
	if p.order.Fates.Mute(name) {
		http.Error(w, "unknown", http.StatusServiceUnavailable)
		return
	}
	known := p.referenceOf(name, now)
	if err := p.log.add(Entry{Kind: Asked, At: now, Reference: name}); err != nil {
		http.Error(w, "the log cannot be written", http.StatusInternalServerError)
		return
	}
	known.asked = true
	writeJSON(w, Inquiry{Charges: known.charges, UnderWay: known.underWay > 0})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
