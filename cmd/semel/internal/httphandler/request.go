package httphandler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/headername"
	"github.com/semel-go/semel/internal/cloudevents"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/internal/structured"
)

// step is a constant part of the input from which the idempotency key is computed; the other part is the
// identity. The value of step must never change, because otherwise a message whose call is in progress would
// get another key.
const step = "handler"

// The headers that Semel defines.
const (
	headerKey     = "Idempotency-Key"
	headerAttempt = "Semel-Attempt"
	headerReplay  = "Semel-Replay"
	headerEffects = "Semel-Effects"
)

// copiedHeaders lists the headers about cause and trace, which are copied from a message to its request.
var copiedHeaders = [...]string{semelheader.Causation, semelheader.Correlation, "correlation-id", "x-correlation-id", "traceparent"}

// request returns the request for m, a CloudEvent in binary mode. request returns an error if a value of the
// message does not fit into a request.
func (h *Handler) request(ctx context.Context, m *semel.Message, now time.Time) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("no request can be made for %s", h.host) // the original error would show the URL
	}
	to := request.Header
	for _, header := range h.config.Headers {
		to.Add(header.Name, header.Value)
	}
	if h.config.Effects && to.Get("Accept") == "" {
		to.Set("Accept", EffectsType)
	}
	if err := h.passOn(to, m); err != nil {
		return nil, err
	}
	trace(to, m)
	event(to, m)
	key := h.keyOf(m)
	if !isSendable([]byte(key)) {
		return nil, errors.New("the key of the intent cannot be sent in a request header")
	}
	// The IETF draft (draft-ietf-httpapi-idempotency-key-header-07) defines the value as a quoted string.
	// Providers, however, document the value without quotes and use the complete header as the key. Some
	// providers accept at most 36 characters, the length of a UUID without quotes. Semel therefore sends the
	// key without quotes.
	if !h.config.NoKey {
		to.Set(headerKey, key)
	}
	to.Set(headerAttempt, strconv.Itoa(m.Attempt))
	addReplayHeaders(to, m)
	to.Set("User-Agent", "semel")
	sign(to, h.config.Secrets, key, now, m.Body)
	return request, nil
}

// addReplayHeaders adds headers about the replay of the message, and whether the replay may have
// effects. If the message is not replayed, the function adds no headers.
func addReplayHeaders(to http.Header, m *semel.Message) {
	r, is := m.Replay()
	if !is {
		return
	}
	to.Set(headerReplay, strconv.FormatInt(r.ID, 10))
	to.Set(headerEffects, map[bool]string{false: "none", true: "real"}[r.Effects])
}

func (h *Handler) keyOf(m *semel.Message) string { return Key(m, h.config.Intents) }

// Key returns the idempotency key of the call for m. The field Identity of m must be set. The parameter
// intent means that m is an intent, which can have its own key.
func Key(m *semel.Message, intent bool) string {
	if intent {
		return m.IntentKey(step)
	}
	return m.IdempotencyKey(step)
}

// passOn copies the message headers that the policy lists.
func (h *Handler) passOn(to http.Header, m *semel.Message) error {
	for _, name := range h.config.Pass {
		for _, header := range m.Headers {
			if !strings.EqualFold(header.Name, name) {
				continue
			}
			if !isSendable(header.Value) {
				return fmt.Errorf("the header %s of the message has a value that cannot be sent in a request header", name)
			}
			to.Add(name, string(header.Value))
		}
	}
	return nil
}

// trace copies the trace headers of a message. Invalid header values are left out.
func trace(to http.Header, m *semel.Message) {
	for _, name := range copiedHeaders {
		if v, ok := m.Headers.Get(name); ok && isSendable(v) {
			to.Set(name, string(v))
		}
	}
	if to.Get("traceparent") == "" {
		return // a tracestate without a traceparent means nothing
	}
	for _, header := range m.Headers {
		if strings.EqualFold(header.Name, "tracestate") && isSendable(header.Value) {
			to.Add("tracestate", string(header.Value))
		}
	}
}

// The attributes of a request for a message that is not a CloudEvent. CloudEvents requires id, source and
// type.
const (
	typeOfNone   = "semel.message"
	sourceOfNone = "semel"
)

// event adds the CloudEvents attributes as headers (HTTP Protocol Binding for CloudEvents 1.0.2, section
// 3.1, https://github.com/cloudevents/spec).
func event(to http.Header, m *semel.Message) {
	attribute := func(name, value string) {
		if value != "" {
			to.Set("ce-"+name, encodeAttribute(value))
		}
	}
	for _, header := range m.Headers {
		name, is := strings.CutPrefix(strings.ToLower(header.Name), "ce-")
		if is && name != "datacontenttype" && headername.Valid(name) && to.Get("ce-"+name) == "" {
			attribute(name, string(header.Value))
		}
	}
	attribute("specversion", cloudevents.Version)
	attribute("id", cmp.Or(m.ID(), m.Identity.ID))
	attribute("source", cmp.Or(m.Source(), m.Identity.Source, sourceOfNone))
	attribute("type", cmp.Or(structured.Type(m), typeOfNone))
	attribute("subject", m.Subject())
	attribute("dataschema", m.DataSchema())
	if at := m.Attributes.Time; !at.IsZero() {
		attribute("time", at.Format(time.RFC3339Nano))
	}
	if content := contentType(m); content != "" {
		to.Set("Content-Type", content)
	}
}

// contentType returns the content type of the message. If the message has no content type, contentType
// returns application/json for a body in JSON, otherwise "".
func contentType(m *semel.Message) string {
	for _, name := range [...]string{"ce-datacontenttype", "content-type"} {
		if v, ok := m.Headers.Get(name); ok && len(v) > 0 && isSendable(v) {
			return string(v)
		}
	}
	if json.Valid(m.Body) {
		return "application/json"
	}
	return ""
}

// encodeAttribute returns an attribute as a header value. A blank, a quote, a percent sign and all
// characters outside printable ASCII are percent-encoded as UTF-8.
func encodeAttribute(value string) string {
	const hexadecimal = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
		}
	}
	return b.String()
}
