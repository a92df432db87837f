package policy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/webhook"
)

// The table of a source of webhooks.

func webhookShape() object[Webhook] {
	return object[Webhook]{fields: append(signatureKeys(),
		key(meta{name: "listen", required: true, doc: "Where the server listens, as `0.0.0.0:8443` or `127.0.0.1:8080`. Sources with different paths may share it; what they say of `tls` and `connections` must be the same then."},
			word{what: "host:port", check: badHookAddress}, func(w *Webhook) *string { return &w.Listen }),
		key(meta{name: "path", required: true, doc: "The path of the requests, as `/hooks/github`. Any other is answered with 404."},
			word{what: "a path that begins with /", pattern: `^/[^{}?#%\s]*$`, check: badHookPath}, func(w *Webhook) *string { return &w.Path }),
		key(meta{name: "max_body", def: "16MiB", doc: "The longest body in bytes; a longer one is answered with 413. At most the `max_body` of the consumer."},
			size{least: 1 << 10, most: 1 << 30}, func(w *Webhook) *int64 { return &w.MaxBody }),
		group(meta{name: "in_hand", doc: "What may have been received and not committed. What comes beyond is answered with 429."},
			inHandShape(), func(w *Webhook) *source.Bound { return &w.InHand }),
		key(meta{name: "wait", def: legible.Span(webhook.DefaultWait), doc: "How long a request waits for the commit, before it is answered with 503. Less than the provider waits: GitHub for 10 s."},
			span{least: 100 * time.Millisecond, most: 5 * time.Minute}, func(w *Webhook) *time.Duration { return &w.Wait }),
		key(meta{name: "repeats", def: "30d", doc: "For how long the provider may send an event again, by itself or because a person asks it to. `semel check` compares it with `retention`."},
			span{least: time.Minute, most: longestKeep}, func(w *Webhook) *time.Duration { return &w.Repeats }),
		key(meta{name: "connections", def: "512", doc: "How many connections may be open at the address; further ones wait until one ends, or has stood idle for a second."},
			count{least: 1, most: 100_000}, func(w *Webhook) *int { return &w.Connections }),
		key(meta{name: "tls", doc: "The certificate that the server shows. The files are read again when they change. Without it requests come as plain HTTP, which is for a proxy on the same host."},
			pointer[TLS]{servingShape()}, func(w *Webhook) **TLS { return &w.TLS }),
	)}
}

func signatureKeys() []field[Webhook] {
	return []field[Webhook]{
		key(meta{name: "scheme", required: true, doc: "How the provider signs: `standard_webhooks` (also Svix), `github`, `stripe`, or `hmac` with the key of that name. See [webhooks](webhooks.md#schemes)."},
			words("standard_webhooks", "github", "stripe", "hmac"), func(w *Webhook) *string { return &w.Scheme }),
		key(meta{name: "secret", required: true, doc: "The secret that the provider signs with, as `${NAME}` of the environment. While it changes, a list of the new and the old one."},
			list[string]{item: secret{noFile: true}, single: true}, func(w *Webhook) *[]string { return &w.Secrets }),
		key(meta{name: "hmac", doc: "The signature of a provider with a scheme of its own: `scheme: hmac`."},
			pointer[webhook.HMACOptions]{hmacShape()}, func(w *Webhook) **webhook.HMACOptions { return &w.HMAC }),
		key(meta{name: "tolerance", doc: "How far the signed time may be from now; 5m unless it is set. Not of schemes that sign no time, as `github`."},
			span{least: time.Second, most: day}, func(w *Webhook) *time.Duration { return &w.Tolerance }),
		key(meta{name: "unsigned", doc: "Headers that messages have although nobody signed them. No other header is in a message but those that the scheme signs."},
			unsignedShape(), func(w *Webhook) *webhook.Unsigned { return &w.Unsigned }),
	}
}

func hmacShape() object[webhook.HMACOptions] {
	name := word{what: "the name of a header"}
	return object[webhook.HMACOptions]{fields: []field[webhook.HMACOptions]{
		key(meta{name: "header", required: true, doc: "The header with the signature."}, name, func(o *webhook.HMACOptions) *string { return &o.Header }),
		key(meta{name: "prefix", doc: "What stands before the signature there, as `sha256=`."}, word{what: "a text"}, func(o *webhook.HMACOptions) *string { return &o.Prefix }),
		key(meta{name: "encoding", def: "hex", doc: "How the signature is written."}, words("hex", "base64"), func(o *webhook.HMACOptions) *string { return &o.Encoding }),
		key(meta{name: "hash", def: "sha256", doc: "The hash of the HMAC."}, words("sha256", "sha512", "sha1"), func(o *webhook.HMACOptions) *string { return &o.Hash }),
		key(meta{name: "signed", def: "{body}", doc: "What is signed: a text that ends with `{body}` and may have `{timestamp}` and `{id}` before it, as `v0:{timestamp}:{body}`."},
			word{what: "a text with {body}"}, func(o *webhook.HMACOptions) *string { return &o.Signed }),
		key(meta{name: "timestamp", doc: "The header of `{timestamp}`, in seconds since 1970."}, name, func(o *webhook.HMACOptions) *string { return &o.Timestamp }),
		key(meta{name: "id", doc: "The header of `{id}`. It is signed, and so may be the identity."}, name, func(o *webhook.HMACOptions) *string { return &o.ID }),
	}}
}

func unsignedShape() object[webhook.Unsigned] {
	return object[webhook.Unsigned]{fields: []field[webhook.Unsigned]{
		key(meta{name: "headers", required: true, doc: "Their names, as `x-github-event`."},
			list[string]{item: word{what: "the name of a header"}, single: true}, func(u *webhook.Unsigned) *[]string { return &u.Headers }),
		key(meta{name: "because", required: true, doc: "Why it is bearable that somebody may have replaced them, in a sentence that `semel check` tells: whoever saw a signed body once can send it again beside others."},
			word{what: "a sentence"}, func(u *webhook.Unsigned) *string { return &u.Because }),
	}}
}

func inHandShape() object[source.Bound] {
	return object[source.Bound]{fields: []field[source.Bound]{
		key(meta{name: "messages", def: fmt.Sprint(webhook.DefaultMessages), doc: "So many messages."},
			count{least: 1, most: 1_000_000}, func(b *source.Bound) *int { return &b.Messages }),
		key(meta{name: "bytes", def: "64MiB", doc: "So many bytes of bodies, those that are being read among them. At least `max_body`."},
			size{least: 1 << 10, most: 64 << 30}, func(b *source.Bound) *int64 { return &b.Bytes }),
	}}
}

// servingShape is of the files of a server.
func servingShape() object[TLS] {
	file := path{word: word{what: "a path"}}
	return object[TLS]{fields: []field[TLS]{
		key(meta{name: "cert", required: true, doc: "A PEM file with the certificate and those between it and its authority."}, file, func(t *TLS) *string { return &t.Cert }),
		key(meta{name: "key", required: true, doc: "A PEM file with its key."}, file, func(t *TLS) *string { return &t.Key }),
	}}
}

func badHookAddress(s string) (reason, remedy string) {
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil || n == 0 || host == "" {
		return "this is no address to listen on", `write "host:port" with a port of 1 to 65535, as "127.0.0.1:8080", or "0.0.0.0:8443" for every interface`
	}
	return "", ""
}

func badHookPath(s string) (reason, remedy string) {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "{}?#% \t") || strings.Contains(s, "//") || strings.Contains(s, "/.") {
		return "this is no path of a request", "write it as /hooks/github, without query and escapes"
	}
	return "", ""
}

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
