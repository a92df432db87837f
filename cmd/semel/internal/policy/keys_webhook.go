package policy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/webhook"
)

// This file has the table of a webhook source.

func webhookShape() shape.Object[Webhook] {
	return shape.Object[Webhook]{Fields: append(signatureKeys(),
		shape.Key(shape.Meta{Name: "listen", Required: true, Doc: "The address of the server, such as `0.0.0.0:8443` or `127.0.0.1:8080`. Sources with different paths may share an address; their `tls` and `connections` must then be equal."},
			shape.Word{What: "host:port", Check: badHookAddress}, func(w *Webhook) *string { return &w.Listen }),
		shape.Key(shape.Meta{Name: "path", Required: true, Doc: "The path of the requests, such as `/hooks/github`. Other paths get 404."},
			shape.Word{What: "a path that begins with /", Pattern: `^/[^{}?#%\s]*$`, Check: badHookPath}, func(w *Webhook) *string { return &w.Path }),
		shape.Key(shape.Meta{Name: "max_body", Def: "16MiB", Doc: "The maximum size of a body; a longer one gets 413. At most the `max_body` of the consumer."},
			shape.Size{Least: 1 << 10, Most: 1 << 30}, func(w *Webhook) *int64 { return &w.MaxBody }),
		shape.Group(shape.Meta{Name: "in_hand", Doc: "Limits for messages that are received and not committed. Requests beyond get 429."},
			inHandShape(), func(w *Webhook) *source.Bound { return &w.InHand }),
		shape.Key(shape.Meta{Name: "wait", Def: legible.Span(webhook.DefaultWait), Doc: "How long a request waits for the commit before it gets 503. Choose it shorter than the provider waits; GitHub waits 10 s."},
			shape.Span{Least: 100 * time.Millisecond, Most: 5 * time.Minute}, func(w *Webhook) *time.Duration { return &w.Wait }),
		shape.Key(shape.Meta{Name: "repeats", Def: "30d", Doc: "How long the provider may repeat an event, automatically or on request. `semel check` compares it with `retention`."},
			shape.Span{Least: time.Minute, Most: longestKeep}, func(w *Webhook) *time.Duration { return &w.Repeats }),
		shape.Key(shape.Meta{Name: "connections", Def: "512", Doc: "The maximum number of open connections at the address. More connections wait until one closes or has been idle for a second."},
			shape.Count{Least: 1, Most: 100_000}, func(w *Webhook) *int { return &w.Connections }),
		shape.Key(shape.Meta{Name: "tls", Doc: "The certificate of the server. The files are read again when they change. Without it the server uses plain HTTP, for a proxy on the same host."},
			shape.Optional[TLS](servingShape()), func(w *Webhook) **TLS { return &w.TLS }),
	)}
}

func signatureKeys() []shape.Field[Webhook] {
	return []shape.Field[Webhook]{
		shape.Key(shape.Meta{Name: "scheme", Required: true, Doc: "The signature scheme of the provider: `standard_webhooks` (also Svix), `github`, `stripe`, or `hmac` with the key `hmac`. See [webhooks](webhooks.md#schemes)."},
			words("standard_webhooks", "github", "stripe", "hmac"), func(w *Webhook) *string { return &w.Scheme }),
		shape.Key(shape.Meta{Name: "secret", Required: true, Doc: "The secret of the provider, as an environment variable `${NAME}`. During a rotation, a list of the new and the old secret."},
			shape.List[string]{Item: secret{noFile: true}, Single: true}, func(w *Webhook) *[]string { return &w.Secrets }),
		shape.Key(shape.Meta{Name: "hmac", Doc: "The signature of a provider with its own scheme; for `scheme: hmac`."},
			shape.Optional[webhook.HMACOptions](hmacShape()), func(w *Webhook) **webhook.HMACOptions { return &w.HMAC }),
		shape.Key(shape.Meta{Name: "tolerance", Doc: "The maximum difference between the signed time and now; default 5m. Not for schemes without a signed time, such as `github`."},
			shape.Span{Least: time.Second, Most: shape.Day}, func(w *Webhook) *time.Duration { return &w.Tolerance }),
		shape.Key(shape.Meta{Name: "unsigned", Doc: "Unsigned headers that messages contain. All other headers in a message are signed by the scheme."},
			unsignedShape(), func(w *Webhook) *webhook.Unsigned { return &w.Unsigned }),
	}
}

func hmacShape() shape.Object[webhook.HMACOptions] {
	name := shape.Word{What: "the name of a header"}
	return shape.Object[webhook.HMACOptions]{Fields: []shape.Field[webhook.HMACOptions]{
		shape.Key(shape.Meta{Name: "header", Required: true, Doc: "The header with the signature."}, name, func(o *webhook.HMACOptions) *string { return &o.Header }),
		shape.Key(shape.Meta{Name: "prefix", Doc: "The prefix of the signature in the header, such as `sha256=`."}, shape.Word{What: "a text"}, func(o *webhook.HMACOptions) *string { return &o.Prefix }),
		shape.Key(shape.Meta{Name: "encoding", Def: "hex", Doc: "The encoding of the signature."}, words("hex", "base64"), func(o *webhook.HMACOptions) *string { return &o.Encoding }),
		shape.Key(shape.Meta{Name: "hash", Def: "sha256", Doc: "The hash of the HMAC."}, words("sha256", "sha512", "sha1"), func(o *webhook.HMACOptions) *string { return &o.Hash }),
		shape.Key(shape.Meta{Name: "signed", Def: "{body}", Doc: "The signed text. It ends with `{body}` and may contain `{timestamp}` and `{id}` before it, such as `v0:{timestamp}:{body}`."},
			shape.Word{What: "a text with {body}"}, func(o *webhook.HMACOptions) *string { return &o.Signed }),
		shape.Key(shape.Meta{Name: "timestamp", Doc: "The header of `{timestamp}`, in seconds since 1970."}, name, func(o *webhook.HMACOptions) *string { return &o.Timestamp }),
		shape.Key(shape.Meta{Name: "id", Doc: "The header of `{id}`. It is signed, so it may be the identity."}, name, func(o *webhook.HMACOptions) *string { return &o.ID }),
	}}
}

func unsignedShape() shape.Object[webhook.Unsigned] {
	return shape.Object[webhook.Unsigned]{Fields: []shape.Field[webhook.Unsigned]{
		shape.Key(shape.Meta{Name: "headers", Required: true, Doc: "The names of the headers, such as `x-github-event`."},
			shape.List[string]{Item: shape.Word{What: "the name of a header"}, Single: true}, func(u *webhook.Unsigned) *[]string { return &u.Headers }),
		shape.Key(shape.Meta{Name: "because", Required: true, Doc: "The reason why forged values are acceptable, shown by `semel check`. An attacker who has seen a signed body can send it again with other headers."},
			shape.Word{What: "a sentence"}, func(u *webhook.Unsigned) *string { return &u.Because }),
	}}
}

func inHandShape() shape.Object[source.Bound] {
	return shape.Object[source.Bound]{Fields: []shape.Field[source.Bound]{
		shape.Key(shape.Meta{Name: "messages", Def: fmt.Sprint(webhook.DefaultMessages), Doc: "The maximum number of messages."},
			shape.Count{Least: 1, Most: 1_000_000}, func(b *source.Bound) *int { return &b.Messages }),
		shape.Key(shape.Meta{Name: "bytes", Def: "64MiB", Doc: "The maximum size of all bodies, including those that are being read. At least `max_body`."},
			shape.Size{Least: 1 << 10, Most: 64 << 30}, func(b *source.Bound) *int64 { return &b.Bytes }),
	}}
}

// servingShape describes the certificate files of a server.
func servingShape() shape.Object[TLS] {
	file := shape.Path{Word: shape.Word{What: "a path"}}
	return shape.Object[TLS]{Fields: []shape.Field[TLS]{
		shape.Key(shape.Meta{Name: "cert", Required: true, Doc: "A PEM file with the certificate and its intermediate certificates."}, file, func(t *TLS) *string { return &t.Cert }),
		shape.Key(shape.Meta{Name: "key", Required: true, Doc: "A PEM file with the private key of the certificate."}, file, func(t *TLS) *string { return &t.Key }),
	}}
}

func badHookAddress(s string) (reason, remedy string) {
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil || n == 0 || host == "" {
		return "this is not an address to listen on", `write "host:port" with a port of 1 to 65535, as "127.0.0.1:8080", or "0.0.0.0:8443" for every interface`
	}
	return "", ""
}

func badHookPath(s string) (reason, remedy string) {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "{}?#% \t") || strings.Contains(s, "//") || strings.Contains(s, "/.") {
		return "this is not the path of a request", "write it as /hooks/github, without query and escapes"
	}
	return "", ""
}
