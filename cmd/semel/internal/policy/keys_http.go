package policy

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"go.yaml.in/yaml/v4"
)

// The table of a handler behind HTTP.

func httpShape() object[HTTP] {
	return object[HTTP]{fields: []field[HTTP]{
		key(meta{name: "url", required: true, doc: "The endpoint, as `https://host/path`. Every message is a POST to it. It is trusted; a user in it is refused, since credentials belong into `headers`."},
			word{what: "a URL, as https://host/path", pattern: `^[Hh][Tt][Tt][Pp][Ss]?://[^@\s]+$`, check: badEndpoint}, func(h *HTTP) *string { return &h.URL }),
		key(meta{name: "headers", doc: "Headers of each request: `Authorization: \"Bearer ${TOKEN}\"`. Those that Semel sets, or that belong to the connection, are refused, and so are credentials that stand in the file."},
			headersShape{}, func(h *HTTP) *[]HTTPHeader { return &h.Headers }),
		key(meta{name: "pass", doc: "Headers of the message that its request gets, too, by name. Attributes of CloudEvents, trace context and correlation it gets anyway. Credentials are refused: whoever writes a message could be anybody with them."},
			list[string]{item: word{what: "the name of a header", check: badPass}, single: true}, func(h *HTTP) *[]string { return &h.Pass }),
		key(meta{name: "key", def: "idempotency_key", doc: "`none`, where the other side knows no keys: none is sent. Then `may_double` or `may_be_lost` is required, and `window` has no meaning."},
			choice[bool]{options: []option[bool]{{word: "idempotency_key"}, {word: "none", value: true}}}, func(h *HTTP) *bool { return &h.NoKey }),
		key(meta{name: "may_double", doc: "Why it does no harm when a call without a key happens twice, in a sentence that is told at the start: a call whose outcome is unknown is made again."},
			word{what: "a sentence"}, func(h *HTTP) *string { return &h.MayDouble }),
		key(meta{name: "may_be_lost", doc: "Why it does no harm when a call without a key does not happen, in a sentence that is told at the start: a call whose outcome is unknown is not made again. Its message ends as discarded, `outcome unknown`, and is counted."},
			word{what: "a sentence"}, func(h *HTTP) *string { return &h.MayBeLost }),
		key(meta{name: "timeout", def: "10s", doc: "The longest that one call may take, to the end of its answer. Shorter than `inbox.lease`, so that it has ended when another process may call, and at most `timeout` of the consumer."},
			span{least: 10 * time.Millisecond, most: time.Hour}, func(h *HTTP) *time.Duration { return &h.Timeout }),
		key(meta{name: "max_retry_after", def: "1h", doc: "The longest wait that an answer may ask for with Retry-After; a longer one is cut to it. A wait longer than `max_in_memory_wait` is kept in the store."},
			span{least: time.Second, most: 365 * day}, func(h *HTTP) *time.Duration { return &h.MaxRetryAfter }),
		key(meta{name: "window", def: legible.Span(consumer.Defaults().Provider.Window), doc: "For how long the endpoint knows an `Idempotency-Key`, from the first call for a message, by the store's clock: a duration, `forever`, or `none` if it knows no keys. While it lasts, less one `timeout` of the consumer, a call whose outcome nobody knows is made again under the same key. After it nobody calls blindly: the message is parked as `outcome unknown`, until `semel inbox resolve` says what became of it."},
			windowShape{}, func(h *HTTP) *time.Duration { return &h.Window }),
		key(meta{name: "sign", doc: "Signs each request as [Standard Webhooks](https://www.standardwebhooks.com) says: `webhook-id`, `webhook-timestamp` and `webhook-signature`. The signature is of the key, the time and the body; of no other header."},
			pointer[Sign]{signShape()}, func(h *HTTP) **Sign { return &h.Sign }),
		key(meta{name: "tls", doc: "Whom this side trusts, and who it is, with https."},
			pointer[TLS]{httpTLSShape()}, func(h *HTTP) **TLS { return &h.TLS }),
		key(meta{name: "effects", doc: "What an answer may have done in the consumer's store, in the transaction that completes the message: once, while the call itself may happen again. See [effects in the answer](#effects-in-the-answer)."},
			pointer[HTTPEffects]{effectsShape()}, func(h *HTTP) **HTTPEffects { return &h.Effects }),
		key(meta{name: "pure", doc: "`true` says that the endpoint changes nothing by itself: what it answers is all that happens. Then it may be called any number of times, needs no claim, and stands beside `strategy: marker` and `effects`: nothing is written before a call, and the answers of many messages share a transaction. See [an endpoint that only answers](calling-out.md#an-endpoint-that-only-answers)."},
			boolean{}, func(h *HTTP) *bool { return &h.Pure }),
		key(meta{name: "connections", doc: "Beside `pure: true`: how many calls are made at once at most, each over a connection of its own; without it as many as there are `workers`. With fewer, the other workers look at markers and commit while the endpoint is busy, so that it gets no more at once than it takes and yet never waits for the store."},
			count{least: 1, most: 1024}, func(h *HTTP) *int { return &h.Connections }),
	}}
}

func signShape() object[Sign] {
	return object[Sign]{fields: []field[Sign]{
		key(meta{name: "secret", required: true, doc: "The secret, `whsec_` and base64 of 24 to 64 bytes, as `${NAME}` of the environment. While it changes, a list of the new and the old one."},
			list[string]{item: signingSecret{secret{noFile: true}}, single: true}, func(s *Sign) *[]string { return &s.Secrets }),
	}}
}

func httpTLSShape() object[TLS] { return object[TLS]{fields: tlsFiles()} }

// windowShape is for how long an endpoint knows keys.
type windowShape struct{ leaf }

func (s windowShape) read(d *decoder, p place) (time.Duration, bool) {
	text, ok := d.text(&p, s.words())
	switch {
	case !ok:
		return 0, false
	case text == forever:
		return consumer.WindowAlways, true
	case text == "none":
		return consumer.WindowNever, true
	}
	if _, isSpan := parseSpan(text); !isSpan {
		d.fault(p, p.shown(text)+" is not "+s.words(), "write a number with its unit, as 24h, or forever, or none")
		return 0, false
	}
	return s.span().read(d, p)
}

func (windowShape) span() span { return span{least: time.Second, most: longestKeep} }

func (s windowShape) words() string { return forever + ", none, or " + s.span().words() }

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

func (s signingSecret) read(d *decoder, p place) (string, bool) {
	text, ok := s.secret.read(d, p)
	if !ok {
		return "", false
	}
	if _, err := httphandler.ParseSecret(text); err != nil {
		d.fault(p, err.Error(), "write into the environment what this prints: echo whsec_$(head -c 32 /dev/urandom | base64)")
		return "", false
	}
	return text, true
}

// headersShape is a mapping of names to values.
type headersShape struct{ leaf }

func (s headersShape) value() word { return word{what: "a text"} }

func (s headersShape) read(d *decoder, p place) ([]HTTPHeader, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return nil, false
	}
	var all []HTTPHeader
	before := d.found()
	for name, at := range d.entries(p) {
		d.note(at.place)
		if why := httphandler.Allowed(name); why != "" {
			d.faultKey(at, why, "remove it")
		}
		if slices.ContainsFunc(all, func(h HTTPHeader) bool { return strings.EqualFold(h.Name, name) }) {
			d.faultKey(at, fmt.Sprintf("the header %s stands here already, in other letters", name), "keep one of them")
		}
		if raw := at.value(); raw.Kind == yaml.ScalarNode && isCredential(name) && !strings.Contains(raw.Value, "${") {
			d.fault(at.place, "a secret stands in the policy", "take it from the environment, as \"Bearer ${TOKEN}\"")
			continue
		}
		value, ok := s.value().read(d, at.place)
		if ok && !httphandler.Sendable(value) {
			d.fault(at.place, "no header can have this value", "write it without control characters and without blanks at its ends")
		}
		all = append(all, HTTPHeader{Name: name, Value: value})
	}
	return all, d.found() == before
}

// isCredential reports whether a header of this name surely holds a secret.
func isCredential(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"},
		func(word string) bool { return strings.Contains(lower, word) })
}

func (headersShape) words() string { return "a mapping of names of headers to their values" }

func (s headersShape) schema() schema {
	return schema{"type": "object", "additionalProperties": s.value().schema(),
		"propertyNames": schema{"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"}}
}

func (s windowShape) schema() schema {
	return schema{"anyOf": []schema{orVariable(schema{"enum": []string{forever, "none"}}), s.span().schema()}}
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

func publishShape() object[Publish] {
	fields := []field[Publish]{
		key(meta{name: "brokers", required: true, doc: "The brokers to ask first, `host:port` each. One text may hold several, with commas between, as variables of the environment do."},
			brokersShape{}, func(p *Publish) *[]string { return &p.Brokers }),
		key(meta{name: "topic", doc: "The topic. It must exist, and is none that the consumer reads. It, or `topic_header`, is required."},
			topicName(), func(p *Publish) *string { return &p.Topic }),
		key(meta{name: "topic_header", doc: "A header of the message that names its topic, which must be one of `topics`. A message without it goes to `topic`; without that, or where another topic is named, it ends as `permanent failure`."},
			word{what: "the name of a header"}, func(p *Publish) *string { return &p.TopicHeader }),
		key(meta{name: "topics", doc: "The topics that `topic_header` may name: whoever writes a message could otherwise write anywhere."},
			list[string]{item: topicName(), single: true}, func(p *Publish) *[]string { return &p.Topics }),
		key(meta{name: "timeout", def: "10s", doc: "The longest that one message waits for the brokers to confirm it. Shorter than `inbox.lease`, and at most `timeout` of the consumer."},
			span{least: 10 * time.Millisecond, most: time.Hour}, func(p *Publish) *time.Duration { return &p.Timeout }),
		key(meta{name: "client_id", def: "semel", doc: "What brokers log, and what their quotas go by."},
			word{what: "a name"}, func(p *Publish) *string { return &p.ClientID }),
	}
	security := securityKeys(func(p *Publish) **TLS { return &p.TLS }, func(p *Publish) **SASL { return &p.SASL })
	return object[Publish]{fields: append(fields, security...)}
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
