package policy

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/webhook"
)

// Webhook is a source of HTTP requests with a signature.
type Webhook struct {
	// Listen is host:port, which several sources may share; Path is the source's own.
	Listen, Path string
	// Scheme is its name in the file; see Signed.
	Scheme string
	// HMAC is nil unless the scheme is hmac.
	HMAC *webhook.HMACOptions
	// Secrets are those that a provider may sign with: never print them.
	Secrets []string
	// Tolerance is 0 where the policy names none.
	Tolerance time.Duration
	Unsigned  webhook.Unsigned
	MaxBody   int64
	InHand    source.Bound
	Wait      time.Duration
	Repeats   time.Duration
	// Connections bounds those that are open at the address.
	Connections int
	// TLS is nil where the policy names none; only Cert and Key are of use.
	TLS *TLS
}

// Signed is the scheme. The error says what HMAC lacks.
func (w *Webhook) Signed() (webhook.Scheme, error) {
	switch w.Scheme {
	case "standard_webhooks":
		return webhook.StandardWebhooks(), nil
	case "github":
		return webhook.GitHub(), nil
	case "stripe":
		return webhook.Stripe(), nil
	}
	o := webhook.HMACOptions{}
	if w.HMAC != nil {
		o = *w.HMAC
	}
	return webhook.HMAC(o)
}

// Config is the receiver's, under the name of its source.
func (w *Webhook) Config(name string) (webhook.Config, error) {
	scheme, err := w.Signed()
	return webhook.Config{
		Name: name, Scheme: scheme, Secrets: w.Secrets, Tolerance: w.Tolerance, Unsigned: w.Unsigned,
		MaxBody: w.MaxBody, InHand: w.InHand, Wait: w.Wait, Repeats: w.Repeats,
	}, err
}

// local reports whether nothing but this machine reaches it.
func (w *Webhook) local() bool {
	host, _, err := net.SplitHostPort(w.Listen)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// once reports whether what the source had cannot be read again.
func (s *Source) once() bool { return s != nil && s.Webhook != nil }

// Replay says whether a consumer's messages may be replayed.
type Replay struct {
	Allowed bool
	// Effects: those outside of the store are allowed.
	Effects bool
	// MaxAge is how old a message may be that is replayed; 0: any.
	MaxAge time.Duration
	// Looks: what is called looks whether effects are allowed.
	Looks bool
}

// Oldest is when a message must have been sent at least to be replayed at this time; zero: any
// will do.
func (r *Replay) Oldest(now time.Time) time.Time {
	if r.MaxAge == 0 {
		return time.Time{}
	}
	return now.Add(-r.MaxAge)
}

// MayReplay says which rule refuses a replay of the consumer; nil if none does.
func (p *Policy) MayReplay(c *Consumer) *shape.Fault {
	if c.Replay.Allowed {
		return nil
	}
	at := "consumers." + c.Name + ".replay.allowed"
	reason, remedy := "it is not written, and without an effect of the kind projection, cache or audit_copy that calls nobody no replay is allowed", "write replay: {allowed: true}"
	switch kind, known := c.Effect.known(); {
	case c.Sends():
		reason, remedy = "this consumer has no source that could be read again", "replay the consumers that write for it"
	case p.positions[at] != (shape.Position{}):
		reason, remedy = "it is false", "write true if a replay does no harm"
	case known && !kind.replayable():
		reason = fmt.Sprintf("it is not written, and an effect of the kind %s (%s) is replayed only where it is", kind.kind, kind.is)
	case known:
		reason = "it is not written, and a consumer that calls somebody is replayed only where it is"
	}
	if kind, known := c.Effect.known(); known && !kind.replayable() {
		remedy += "; a second one would do this: " + c.Effect.Says
	}
	f := p.Fault(at, reason, remedy)
	return &f
}

// Endpoint is the whole URL.
func (t Traces) Endpoint() string {
	u, err := url.Parse(t.OTLP)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.OTLP
}
