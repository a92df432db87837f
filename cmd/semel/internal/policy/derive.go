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

// Webhook is a source of signed HTTP requests.
type Webhook struct {
	// Listen is host:port, which several sources may share. Each Path belongs to one source.
	Listen, Path string
	// Scheme is the name of the signature scheme in the policy; see Signed.
	Scheme string
	// HMAC configures the scheme hmac; nil for other schemes.
	HMAC *webhook.HMACOptions
	// Secrets are the secrets that verify signatures. A signature made with any of the secrets is valid.
	// Never print Secrets.
	Secrets []string
	// Tolerance is the maximum age of a signature; 0 if the policy sets none.
	Tolerance time.Duration
	Unsigned  webhook.Unsigned
	MaxBody   int64
	InHand    source.Bound
	Wait      time.Duration
	Repeats   time.Duration
	// Connections is the maximum number of open connections at the address.
	Connections int
	// TLS has the server's certificate in Cert and Key; nil without HTTPS.
	TLS *TLS
}

// Signed returns the signature scheme. If an option of HMAC is missing, the error names the option.
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

// Config returns the configuration of the receiver. The parameter name is the name of the source.
func (w *Webhook) Config(name string) (webhook.Config, error) {
	scheme, err := w.Signed()
	return webhook.Config{
		Name: name, Scheme: scheme, Secrets: w.Secrets, Tolerance: w.Tolerance, Unsigned: w.Unsigned,
		MaxBody: w.MaxBody, InHand: w.InHand, Wait: w.Wait, Repeats: w.Repeats,
	}, err
}

// isLocal reports whether only this machine can reach the address.
func (w *Webhook) isLocal() bool {
	host, _, err := net.SplitHostPort(w.Listen)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// deliversOnce reports whether the source delivers each message only once: webhook requests cannot be
// read again.
func (s *Source) deliversOnce() bool { return s != nil && s.Webhook != nil }

// Replay says whether a consumer's messages may be replayed.
type Replay struct {
	Allowed bool
	// Effects allows external effects.
	Effects bool
	// MaxAge is the maximum age of replayed messages; 0: no limit.
	MaxAge time.Duration
	// If Looks is true, the endpoint decides whether a replayed message may have effects.
	Looks bool
}

// Oldest returns the earliest timestamp that a replay accepts. The zero time means no limit.
func (r *Replay) Oldest(now time.Time) time.Time {
	if r.MaxAge == 0 {
		return time.Time{}
	}
	return now.Add(-r.MaxAge)
}

// MayReplay returns a fault that explains why the policy forbids a replay of the consumer; nil if a replay
// is allowed.
func (p *Policy) MayReplay(c *Consumer) *shape.Fault {
	if c.Replay.Allowed {
		return nil
	}
	at := "consumers." + c.Name + ".replay.allowed"
	reason, remedy := "without this key, replays are only allowed for an effect of the kind projection, cache or audit_copy without calls", "write replay: {allowed: true}"
	switch kind, known := c.Effect.description(); {
	case c.Sends():
		reason, remedy = "this consumer has no source that can be read again", "replay the consumers that write for it"
	case p.positions[at] != (shape.Position{}):
		reason, remedy = "it is false", "write true if a replay is harmless"
	case known && !kind.isReplayable():
		reason = fmt.Sprintf("an effect of the kind %s (%s) is only replayed if this key is set", kind.kind, kind.definition)
	case known:
		reason = "a consumer that calls another system is only replayed if this key is set"
	}
	if kind, known := c.Effect.description(); known && !kind.isReplayable() {
		remedy += "; a second effect would do this: " + c.Effect.Says
	}
	f := p.Fault(at, reason, remedy)
	return &f
}

// Endpoint returns the complete URL.
func (t Traces) Endpoint() string {
	u, err := url.Parse(t.OTLP)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.OTLP
}
