package policy

import (
	"net"
	"net/netip"
	"time"

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
