package policy

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"go.yaml.in/yaml/v4"
)

// This file has the table of an HTTP handler.

func httpShape() shape.Object[HTTP] {
	return shape.Object[HTTP]{Fields: []shape.Field[HTTP]{
		shape.Key(shape.Meta{Name: "url", Required: true, Doc: "The endpoint, as `https://host/path`. Every message is a POST request to the endpoint. Semel trusts the endpoint. A user in the URL is rejected, because credentials belong into `headers`."},
			shape.Word{What: "a URL, as https://host/path", Pattern: `^[Hh][Tt][Tt][Pp][Ss]?://[^@\s]+$`, Check: badEndpoint}, func(h *HTTP) *string { return &h.URL }),
		shape.Key(shape.Meta{Name: "headers", Doc: "Headers of each request: `Authorization: \"Bearer ${TOKEN}\"`. Headers that Semel sets, headers of the connection, and credentials in plain text are rejected."},
			headersShape{}, func(h *HTTP) *[]HTTPHeader { return &h.Headers }),
		shape.Key(shape.Meta{Name: "pass", Doc: "Names of message headers to copy to the request. Attributes of CloudEvents, trace context and correlation are always copied. Credentials are rejected, because a producer could impersonate another client with them."},
			shape.List[string]{Item: shape.Word{What: "the name of a header", Check: badPass}, Single: true}, func(h *HTTP) *[]string { return &h.Pass }),
		shape.Key(shape.Meta{Name: "key", Def: "idempotency_key", Doc: "`none` sends no key, for endpoints that do not support keys. Then `may_double` or `may_be_lost` is required, and `window` does not apply."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "idempotency_key"}, {Word: "none", Value: true}}}, func(h *HTTP) *bool { return &h.NoKey }),
		shape.Key(shape.Meta{Name: "may_double", Doc: "The reason why it is harmless if a call without a key happens twice. Calls with an unknown outcome are repeated. The reason is logged at the start."},
			shape.Word{What: "a sentence"}, func(h *HTTP) *string { return &h.MayDouble }),
		shape.Key(shape.Meta{Name: "may_be_lost", Doc: "The reason why it is harmless if a call without a key does not happen. Calls with an unknown outcome are not repeated; their messages are discarded with the reason `outcome unknown` and counted. The reason is logged at the start."},
			shape.Word{What: "a sentence"}, func(h *HTTP) *string { return &h.MayBeLost }),
		shape.Key(shape.Meta{Name: "timeout", Def: "10s", Doc: "The maximum time of one call, until the end of the response. It must be shorter than `inbox.lease`, so that the call has ended before another process may repeat it, and at most `timeout` of the consumer."},
			shape.Span{Least: 10 * time.Millisecond, Most: time.Hour}, func(h *HTTP) *time.Duration { return &h.Timeout }),
		shape.Key(shape.Meta{Name: "max_retry_after", Def: "1h", Doc: "The maximum wait that a response may request with Retry-After; a longer wait is shortened to this maximum. Messages with a wait longer than `max_in_memory_wait` wait in the store."},
			shape.Span{Least: time.Second, Most: 365 * shape.Day}, func(h *HTTP) *time.Duration { return &h.MaxRetryAfter }),
		shape.Key(shape.Meta{Name: "window", Def: legible.Span(consumer.Defaults().Provider.Window), Doc: "How long the endpoint remembers an `Idempotency-Key` after the first call for a message, by the store's clock: a duration, `forever`, or `none` if the endpoint does not support keys. Within this time, less one `timeout` of the consumer, a call with an unknown outcome is repeated with the same key. Later the call is not repeated: the message is parked as `outcome unknown` until an operator records the outcome with `semel messages resolve`."},
			windowShape{}, func(h *HTTP) *time.Duration { return &h.Window }),
		shape.Key(shape.Meta{Name: "sign", Doc: "Signs each request according to [Standard Webhooks](https://www.standardwebhooks.com), with the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. The signature covers the key, the time and the body, and no other header."},
			shape.Optional[Sign](signShape()), func(h *HTTP) **Sign { return &h.Sign }),
		shape.Key(shape.Meta{Name: "tls", Doc: "The trusted certificate authorities and the client certificate, for https."},
			shape.Optional[TLS](httpTLSShape()), func(h *HTTP) **TLS { return &h.TLS }),
		shape.Key(shape.Meta{Name: "effects", Doc: "The effects that a response may request in the consumer's store. They happen once, in the transaction that completes the message, even if the call is repeated. See [effects in the answer](#effects-in-the-answer)."},
			shape.Optional[HTTPEffects](effectsShape()), func(h *HTTP) **HTTPEffects { return &h.Effects }),
		shape.Key(shape.Meta{Name: "pure", Doc: "`true` declares that the endpoint changes nothing: all effects are in its responses. Then calls may be repeated and need no claim. Requires `strategy: marker` and `effects`. Nothing is written before a call, and the responses of many messages share a transaction. See [an endpoint that only answers](http-handlers.md#an-endpoint-that-only-answers)."},
			shape.Boolean{}, func(h *HTTP) *bool { return &h.Pure }),
		shape.Key(shape.Meta{Name: "connections", Doc: "With `pure: true`: the maximum number of concurrent calls, each on its own connection. Default: `workers`. With fewer connections than workers, the other workers read markers and commit while the endpoint is busy, so the endpoint is never overloaded and never waits for the store."},
			shape.Count{Least: 1, Most: 1024}, func(h *HTTP) *int { return &h.Connections }),
	}}
}

func signShape() shape.Object[Sign] {
	return shape.Object[Sign]{Fields: []shape.Field[Sign]{
		shape.Key(shape.Meta{Name: "secret", Required: true, Doc: "The secret, `whsec_` and base64 of 24 to 64 bytes, as `${NAME}` of the environment. During a rotation, a list of the new and the old secret."},
			shape.List[string]{Item: signingSecret{secret{noFile: true}}, Single: true}, func(s *Sign) *[]string { return &s.Secrets }),
	}}
}

func httpTLSShape() shape.Object[TLS] { return shape.Object[TLS]{Fields: tlsFiles()} }

// windowShape describes how long an endpoint remembers idempotency keys.
type windowShape struct{ shape.Leaf }

func (s windowShape) Read(d *shape.Decoder, p shape.Place) (time.Duration, bool) {
	text, ok := d.Text(&p, s.Words())
	switch {
	case !ok:
		return 0, false
	case text == forever:
		return consumer.WindowAlways, true
	case text == "none":
		return consumer.WindowNever, true
	}
	if _, isSpan := shape.ParseSpan(text); !isSpan {
		d.Fault(p, p.Shown(text)+" is not "+s.Words(), "write a number with its unit, as 24h, or forever, or none")
		return 0, false
	}
	return s.span().Read(d, p)
}

func (windowShape) span() shape.Span { return shape.Span{Least: time.Second, Most: longestKeep} }

func (s windowShape) Words() string { return forever + ", none, or " + s.span().Words() }

// badEndpoint returns the reason why a URL is invalid, and a remedy. The reason and the remedy do not quote
// the URL, which may contain a secret.
func badEndpoint(s string) (reason, remedy string) {
	const form = "write https://host/path, or http://host:port/path"
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t") || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "this is not a URL with http or https", form
	case u.User != nil:
		return "the URL contains a user, which would be shown with the URL", `write headers: {Authorization: "Basic ${CREDENTIALS}"}, and the URL without`
	case u.Fragment != "":
		return "the URL has a fragment, which is never sent", "remove it, from # on"
	}
	return "", ""
}

func badPass(name string) (reason, remedy string) {
	if why := httphandler.Passable(name); why != "" {
		return why, "remove it"
	}
	return "", ""
}

// signingSecret describes a secret for signing requests.
type signingSecret struct{ secret }

func (s signingSecret) Read(d *shape.Decoder, p shape.Place) (string, bool) {
	text, ok := s.secret.Read(d, p)
	if !ok {
		return "", false
	}
	if _, err := httphandler.ParseSecret(text); err != nil {
		d.Fault(p, err.Error(), "set the environment variable to the output of: echo whsec_$(head -c 32 /dev/urandom | base64)")
		return "", false
	}
	return text, true
}

// headersShape describes a mapping of header names to values.
type headersShape struct{ shape.Leaf }

func (s headersShape) value() shape.Word { return shape.Word{What: "a text"} }

func (s headersShape) Read(d *shape.Decoder, p shape.Place) ([]HTTPHeader, bool) {
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, s.Words())
		return nil, false
	}
	var all []HTTPHeader
	before := d.Found()
	for name, at := range d.Entries(p) {
		d.Note(at.Place)
		if why := httphandler.Allowed(name); why != "" {
			d.FaultKey(at, why, "remove it")
		}
		if slices.ContainsFunc(all, func(h HTTPHeader) bool { return strings.EqualFold(h.Name, name) }) {
			d.FaultKey(at, fmt.Sprintf("the header %s is already here, with other upper and lower case", name), "keep one of them")
		}
		if raw := at.Value(); raw.Kind == yaml.ScalarNode && isCredential(name) && !strings.Contains(raw.Value, "${") {
			d.Fault(at.Place, "the policy contains a secret in plain text", "take it from the environment, as \"Bearer ${TOKEN}\"")
			continue
		}
		value, ok := s.value().Read(d, at.Place)
		if ok && !httphandler.Sendable(value) {
			d.Fault(at.Place, "a header cannot have this value", "write it without control characters and without blanks at its ends")
		}
		all = append(all, HTTPHeader{Name: name, Value: value})
	}
	return all, d.Found() == before
}

// isCredential reports whether a header with this name probably contains a secret.
func isCredential(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"},
		func(word string) bool { return strings.Contains(lower, word) })
}

func (headersShape) Words() string { return "a mapping of names of headers to their values" }

func (s headersShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "additionalProperties": s.value().Schema(),
		"propertyNames": shape.Schema{"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"}}
}

func (s windowShape) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{shape.OrVariable(shape.Schema{"enum": []string{forever, "none"}}), s.span().Schema()}}
}

// HTTP is a handler that calls an endpoint.
type HTTP struct {
	// URL is the URL of the endpoint. The query of the URL may contain a secret, so never print the URL.
	URL string
	// Headers are sent with each request, in the file's order. Values can be secret.
	Headers []HTTPHeader
	// The field Pass has the names of message headers that are copied to the request.
	Pass []string
	// NoKey sends requests without an idempotency key. If NoKey is set, MayDouble or MayBeLost has the user's
	// reason why an unknown outcome is acceptable.
	NoKey                bool
	MayDouble, MayBeLost string
	// Timeout limits one call.
	Timeout time.Duration
	// MaxRetryAfter is the maximum wait that a Retry-After header of the endpoint may request.
	MaxRetryAfter time.Duration
	// Window is how long the endpoint remembers an idempotency key. WindowAlways and WindowNever of package
	// consumer are valid too.
	Window time.Duration
	// Sign is nil if requests are not signed.
	Sign *Sign
	// TLS is nil if the policy has none.
	TLS *TLS
	// Effects are the statements and intents that a response may request; nil if responses have no effects.
	Effects *HTTPEffects
	// Pure declares that the endpoint changes nothing. If Pure is set, all effects are in the endpoint's
	// responses.
	Pure bool
	// Connections is the maximum number of concurrent calls. The default of Connections is the consumer's number
	// of workers.
	Connections int
}

// HTTPEffects are the effects that a response may request.
type HTTPEffects struct {
	// Statements are the statements that a response may name, in the file's order.
	Statements []*AnswerStatement
	// Intents are the names of the consumers that send the intents of a response.
	Intents []string
}

// AnswerStatement is a statement that a response may name.
type AnswerStatement struct {
	Name, SQL string
	Params    []AnswerParam
	// Rows and Otherwise have the same meaning as in Statement.
	Rows      *int64
	Otherwise string
}

// AnswerParam is a parameter whose value comes from the response.
type AnswerParam sqlhandler.TypedParam

// isLocal reports whether the endpoint is on this host.
func (h *HTTP) isLocal() bool {
	u, err := url.Parse(h.URL)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// HTTPHeader is a header of a request.
type HTTPHeader struct{ Name, Value string }

// Sign configures the signatures of requests.
type Sign struct {
	// Secrets sign each request. Each secret adds one signature.
	Secrets []string
}

func publishShape() shape.Object[Publish] {
	fields := []shape.Field[Publish]{
		shape.Key(shape.Meta{Name: "brokers", Required: true, Doc: "The bootstrap brokers as `host:port`. One text may contain several, separated by commas."},
			brokersShape{}, func(p *Publish) *[]string { return &p.Brokers }),
		shape.Key(shape.Meta{Name: "topic", Doc: "The topic. It must exist, and the consumer must not read it. Either `topic` or `topic_header` is required."},
			topicName(), func(p *Publish) *string { return &p.Topic }),
		shape.Key(shape.Meta{Name: "topic_header", Doc: "A message header with the name of the topic, which must be one of `topics`. A message without the header goes to `topic`. If `topic` is not set, or the header has another topic, the message ends as `permanent failure`."},
			shape.Word{What: "the name of a header"}, func(p *Publish) *string { return &p.TopicHeader }),
		shape.Key(shape.Meta{Name: "topics", Doc: "The topics that `topic_header` may contain. Without this list, producers could publish to any topic."},
			shape.List[string]{Item: topicName(), Single: true}, func(p *Publish) *[]string { return &p.Topics }),
		shape.Key(shape.Meta{Name: "timeout", Def: "10s", Doc: "The maximum time until the brokers confirm a message. It must be shorter than `inbox.lease`, and at most `timeout` of the consumer."},
			shape.Span{Least: 10 * time.Millisecond, Most: time.Hour}, func(p *Publish) *time.Duration { return &p.Timeout }),
		shape.Key(shape.Meta{Name: "client_id", Def: "semel", Doc: "The client id for the logs and quotas of brokers."},
			shape.Word{What: "a name"}, func(p *Publish) *string { return &p.ClientID }),
	}
	security := securityKeys(func(p *Publish) **TLS { return &p.TLS }, func(p *Publish) **SASL { return &p.SASL })
	return shape.Object[Publish]{Fields: append(fields, security...)}
}

// Publish is a handler that publishes each message to Kafka.
type Publish struct {
	// Brokers are the addresses of brokers, as host:port.
	Brokers []string
	// Topic is the destination of messages. A message header with the name TopicHeader can select one of Topics
	// instead of Topic. The policy sets Topic, TopicHeader or both.
	Topic, TopicHeader string
	Topics             []string
	// Timeout is the maximum duration of one call to the brokers.
	Timeout time.Duration
	// ClientID is the client id in requests to the brokers.
	ClientID string
	// TLS and SASL are nil if the policy sets none.
	TLS  *TLS
	SASL *SASL
}

// destinations returns the topics that the given key lists: the key topic or the key topics.
func (p *Publish) destinations(key string) []string {
	if key == "topic" {
		return slices.DeleteFunc([]string{p.Topic}, func(t string) bool { return t == "" })
	}
	return p.Topics
}

// outsideCall describes the part of a handler that calls another system.
type outsideCall struct {
	// path is the path of the handler's key, relative to the consumer.
	path string
	// timeout is the maximum duration of one call.
	timeout time.Duration
}

// outsideCall returns the part of the handler that calls another system; nil if there is none.
func (h *Handler) outsideCall() *outsideCall {
	switch {
	case h.HTTP != nil:
		return &outsideCall{"handler.http", h.HTTP.Timeout}
	case h.Kafka != nil:
		return &outsideCall{"handler.kafka", h.Kafka.Timeout}
	}
	return nil
}

// provider returns how long the called system remembers idempotency keys. provider returns the zero value
// for handlers that do not use HTTP.
func (h *HTTP) provider() consumer.Provider {
	if h == nil {
		return consumer.Provider{}
	}
	return consumer.Provider{Window: h.Window}
}
