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

// The table of a handler behind HTTP.

func httpShape() shape.Object[HTTP] {
	return shape.Object[HTTP]{Fields: []shape.Field[HTTP]{
		shape.Key(shape.Meta{Name: "url", Required: true, Doc: "The endpoint, as `https://host/path`. Every message is a POST to it. It is trusted; a user in it is refused, since credentials belong into `headers`."},
			shape.Word{What: "a URL, as https://host/path", Pattern: `^[Hh][Tt][Tt][Pp][Ss]?://[^@\s]+$`, Check: badEndpoint}, func(h *HTTP) *string { return &h.URL }),
		shape.Key(shape.Meta{Name: "headers", Doc: "Headers of each request: `Authorization: \"Bearer ${TOKEN}\"`. Those that Semel sets, or that belong to the connection, are refused, and so are credentials that stand in the file."},
			headersShape{}, func(h *HTTP) *[]HTTPHeader { return &h.Headers }),
		shape.Key(shape.Meta{Name: "pass", Doc: "Headers of the message that its request gets, too, by name. Attributes of CloudEvents, trace context and correlation it gets anyway. Credentials are refused: whoever writes a message could be anybody with them."},
			shape.List[string]{Item: shape.Word{What: "the name of a header", Check: badPass}, Single: true}, func(h *HTTP) *[]string { return &h.Pass }),
		shape.Key(shape.Meta{Name: "key", Def: "idempotency_key", Doc: "`none`, where the other side knows no keys: none is sent. Then `may_double` or `may_be_lost` is required, and `window` has no meaning."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "idempotency_key"}, {Word: "none", Value: true}}}, func(h *HTTP) *bool { return &h.NoKey }),
		shape.Key(shape.Meta{Name: "may_double", Doc: "Why it does no harm when a call without a key happens twice, in a sentence that is told at the start: a call whose outcome is unknown is made again."},
			shape.Word{What: "a sentence"}, func(h *HTTP) *string { return &h.MayDouble }),
		shape.Key(shape.Meta{Name: "may_be_lost", Doc: "Why it does no harm when a call without a key does not happen, in a sentence that is told at the start: a call whose outcome is unknown is not made again. Its message ends as discarded, `outcome unknown`, and is counted."},
			shape.Word{What: "a sentence"}, func(h *HTTP) *string { return &h.MayBeLost }),
		shape.Key(shape.Meta{Name: "timeout", Def: "10s", Doc: "The longest that one call may take, to the end of its answer. Shorter than `inbox.lease`, so that it has ended when another process may call, and at most `timeout` of the consumer."},
			shape.Span{Least: 10 * time.Millisecond, Most: time.Hour}, func(h *HTTP) *time.Duration { return &h.Timeout }),
		shape.Key(shape.Meta{Name: "max_retry_after", Def: "1h", Doc: "The longest wait that an answer may ask for with Retry-After; a longer one is cut to it. A wait longer than `max_in_memory_wait` is kept in the store."},
			shape.Span{Least: time.Second, Most: 365 * shape.Day}, func(h *HTTP) *time.Duration { return &h.MaxRetryAfter }),
		shape.Key(shape.Meta{Name: "window", Def: legible.Span(consumer.Defaults().Provider.Window), Doc: "For how long the endpoint knows an `Idempotency-Key`, from the first call for a message, by the store's clock: a duration, `forever`, or `none` if it knows no keys. While it lasts, less one `timeout` of the consumer, a call whose outcome nobody knows is made again under the same key. After it nobody calls blindly: the message is parked as `outcome unknown`, until `semel inbox resolve` says what became of it."},
			windowShape{}, func(h *HTTP) *time.Duration { return &h.Window }),
		shape.Key(shape.Meta{Name: "sign", Doc: "Signs each request as [Standard Webhooks](https://www.standardwebhooks.com) says: `webhook-id`, `webhook-timestamp` and `webhook-signature`. The signature is of the key, the time and the body; of no other header."},
			shape.Optional[Sign](signShape()), func(h *HTTP) **Sign { return &h.Sign }),
		shape.Key(shape.Meta{Name: "tls", Doc: "Whom this side trusts, and who it is, with https."},
			shape.Optional[TLS](httpTLSShape()), func(h *HTTP) **TLS { return &h.TLS }),
		shape.Key(shape.Meta{Name: "effects", Doc: "What an answer may have done in the consumer's store, in the transaction that completes the message: once, while the call itself may happen again. See [effects in the answer](#effects-in-the-answer)."},
			shape.Optional[HTTPEffects](effectsShape()), func(h *HTTP) **HTTPEffects { return &h.Effects }),
		shape.Key(shape.Meta{Name: "pure", Doc: "`true` says that the endpoint changes nothing by itself: what it answers is all that happens. Then it may be called any number of times, needs no claim, and stands beside `strategy: marker` and `effects`: nothing is written before a call, and the answers of many messages share a transaction. See [an endpoint that only answers](http-handlers.md#an-endpoint-that-only-answers)."},
			shape.Boolean{}, func(h *HTTP) *bool { return &h.Pure }),
		shape.Key(shape.Meta{Name: "connections", Doc: "Beside `pure: true`: how many calls are made at once at most, each over a connection of its own; without it as many as there are `workers`. With fewer, the other workers look at markers and commit while the endpoint is busy, so that it gets no more at once than it takes and yet never waits for the store."},
			shape.Count{Least: 1, Most: 1024}, func(h *HTTP) *int { return &h.Connections }),
	}}
}

func signShape() shape.Object[Sign] {
	return shape.Object[Sign]{Fields: []shape.Field[Sign]{
		shape.Key(shape.Meta{Name: "secret", Required: true, Doc: "The secret, `whsec_` and base64 of 24 to 64 bytes, as `${NAME}` of the environment. While it changes, a list of the new and the old one."},
			shape.List[string]{Item: signingSecret{secret{noFile: true}}, Single: true}, func(s *Sign) *[]string { return &s.Secrets }),
	}}
}

func httpTLSShape() shape.Object[TLS] { return shape.Object[TLS]{Fields: tlsFiles()} }

// windowShape is for how long an endpoint knows keys.
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

// badEndpoint says nothing of the text itself: it may hold a secret.
func badEndpoint(s string) (reason, remedy string) {
	const form = "write https://host/path, or http://host:port/path"
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t") || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "this is no URL of http or https", form
	case u.User != nil:
		return "the URL has a user in it, who would be shown wherever the URL is", `write headers: {Authorization: "Basic ${CREDENTIALS}"}, and the URL without`
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

// signingSecret is a secret that requests can be signed with.
type signingSecret struct{ secret }

func (s signingSecret) Read(d *shape.Decoder, p shape.Place) (string, bool) {
	text, ok := s.secret.Read(d, p)
	if !ok {
		return "", false
	}
	if _, err := httphandler.ParseSecret(text); err != nil {
		d.Fault(p, err.Error(), "write into the environment what this prints: echo whsec_$(head -c 32 /dev/urandom | base64)")
		return "", false
	}
	return text, true
}

// headersShape is a mapping of names to values.
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
			d.FaultKey(at, fmt.Sprintf("the header %s stands here already, in other letters", name), "keep one of them")
		}
		if raw := at.Value(); raw.Kind == yaml.ScalarNode && isCredential(name) && !strings.Contains(raw.Value, "${") {
			d.Fault(at.Place, "a secret stands in the policy", "take it from the environment, as \"Bearer ${TOKEN}\"")
			continue
		}
		value, ok := s.value().Read(d, at.Place)
		if ok && !httphandler.Sendable(value) {
			d.Fault(at.Place, "no header can have this value", "write it without control characters and without blanks at its ends")
		}
		all = append(all, HTTPHeader{Name: name, Value: value})
	}
	return all, d.Found() == before
}

// isCredential reports whether a header of this name surely holds a secret.
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
	// URL is the endpoint's, which may hold a secret in its query: never print it.
	URL string
	// Headers are sent with each request, in the file's order; values may be secret.
	Headers []HTTPHeader
	// Pass names the message's headers that are sent, too.
	Pass []string
	// NoKey: no idempotency key is sent. One of the other two is a reason in the author's
	// words then.
	NoKey                bool
	MayDouble, MayBeLost string
	// Timeout is of one call.
	Timeout time.Duration
	// MaxRetryAfter is the longest wait that an answer may ask for.
	MaxRetryAfter time.Duration
	// Window is for how long the endpoint knows a key, or one of consumer.WindowAlways and
	// consumer.WindowNever.
	Window time.Duration
	// Sign is nil where requests are not signed.
	Sign *Sign
	// TLS is nil where the policy names none.
	TLS *TLS
	// Effects is nil where an answer brings none.
	Effects *HTTPEffects
	// Pure: the endpoint changes nothing, and what it answers is all.
	Pure bool
	// Connections is how many calls are made at once at most; the consumer's workers unless
	// the file says.
	Connections int
}

// HTTPEffects are what an endpoint's answer may have done in the store.
type HTTPEffects struct {
	// Statements are those that it may name, in the file's order.
	Statements []*AnswerStatement
	// Intents are the consumers that it may write intents for.
	Intents []string
}

// AnswerStatement is one of them.
type AnswerStatement struct {
	Name, SQL string
	Params    []AnswerParam
	// Rows and Otherwise are as a Statement's.
	Rows      *int64
	Otherwise string
}

// AnswerParam is a parameter whose value the answer gives.
type AnswerParam sqlhandler.TypedParam

// local reports whether nothing of a call leaves this host.
func (h *HTTP) local() bool {
	u, err := url.Parse(h.URL)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// HTTPHeader is a header of a request.
type HTTPHeader struct{ Name, Value string }

// Sign says how requests are signed.
type Sign struct {
	// Secrets make a signature each.
	Secrets []string
}

func publishShape() shape.Object[Publish] {
	fields := []shape.Field[Publish]{
		shape.Key(shape.Meta{Name: "brokers", Required: true, Doc: "The bootstrap brokers as `host:port`. One text may contain several, separated by commas."},
			brokersShape{}, func(p *Publish) *[]string { return &p.Brokers }),
		shape.Key(shape.Meta{Name: "topic", Doc: "The topic. It must exist, and is none that the consumer reads. It, or `topic_header`, is required."},
			topicName(), func(p *Publish) *string { return &p.Topic }),
		shape.Key(shape.Meta{Name: "topic_header", Doc: "A header of the message that names its topic, which must be one of `topics`. A message without it goes to `topic`; without that, or where another topic is named, it ends as `permanent failure`."},
			shape.Word{What: "the name of a header"}, func(p *Publish) *string { return &p.TopicHeader }),
		shape.Key(shape.Meta{Name: "topics", Doc: "The topics that `topic_header` may name: whoever writes a message could otherwise write anywhere."},
			shape.List[string]{Item: topicName(), Single: true}, func(p *Publish) *[]string { return &p.Topics }),
		shape.Key(shape.Meta{Name: "timeout", Def: "10s", Doc: "The longest that one message waits for the brokers to confirm it. Shorter than `inbox.lease`, and at most `timeout` of the consumer."},
			shape.Span{Least: 10 * time.Millisecond, Most: time.Hour}, func(p *Publish) *time.Duration { return &p.Timeout }),
		shape.Key(shape.Meta{Name: "client_id", Def: "semel", Doc: "The client id for the logs and quotas of brokers."},
			shape.Word{What: "a name"}, func(p *Publish) *string { return &p.ClientID }),
	}
	security := securityKeys(func(p *Publish) **TLS { return &p.TLS }, func(p *Publish) **SASL { return &p.SASL })
	return shape.Object[Publish]{Fields: append(fields, security...)}
}

// Publish is a handler that publishes each message to Kafka.
type Publish struct {
	// Brokers are host:port.
	Brokers []string
	// Topic is where messages go, unless their TopicHeader names one of Topics. It or
	// TopicHeader is set.
	Topic, TopicHeader string
	Topics             []string
	// Timeout is how long one call waits for the brokers.
	Timeout time.Duration
	// ClientID is what brokers are told.
	ClientID string
	// TLS and SASL are nil where the policy names none.
	TLS  *TLS
	SASL *SASL
}

// destinations are the topics that can be published to, by the key that names them.
func (p *Publish) destinations(key string) []string {
	if key == "topic" {
		return slices.DeleteFunc([]string{p.Topic}, func(t string) bool { return t == "" })
	}
	return p.Topics
}

// outside is what calls out, whatever it calls.
type outside struct {
	// at is its path below the consumer's.
	at string
	// timeout is of one call.
	timeout time.Duration
}

// outside is nil where the handler does not call out.
func (h *Handler) outside() *outside {
	switch {
	case h.HTTP != nil:
		return &outside{"handler.http", h.HTTP.Timeout}
	case h.Kafka != nil:
		return &outside{"handler.kafka", h.Kafka.Timeout}
	}
	return nil
}

// provider is what is known of the other side, where one is called.
func (h *HTTP) provider() consumer.Provider {
	if h == nil {
		return consumer.Provider{}
	}
	return consumer.Provider{Window: h.Window}
}
