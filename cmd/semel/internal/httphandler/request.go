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

// step is hashed into the idempotency key of a call, beside the identity. step must never change:
// a message with a call in progress would get another key.
const step = "handler"

// The headers that Semel defines.
const (
	headerKey     = "Idempotency-Key"
	headerAttempt = "Semel-Attempt"
	headerReplay  = "Semel-Replay"
	headerEffects = "Semel-Effects"
)

// kept are headers of a message that are copied to its request: cause and trace.
var kept = [...]string{semelheader.Causation, semelheader.Correlation, "correlation-id", "x-correlation-id", "traceparent"}

// request returns the call for m as a CloudEvent in binary mode. request returns an error if a
// request cannot hold a value of the message.
func (h *Handler) request(ctx context.Context, m *semel.Message, now time.Time) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("no request can be made for %s", h.host) // the error shows the URL
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
	if !sendable([]byte(key)) {
		return nil, errors.New("the key of the intent cannot be sent in a request header")
	}
	// The IETF draft (draft-ietf-httpapi-idempotency-key-header-07) defines the value as a quoted string.
	// Providers document it without quotes and take the complete value as the key, some with at most 36
	// characters, which is a UUID without quotes. So it is sent without quotes.
	if !h.config.NoKey {
		to.Set(headerKey, key)
	}
	to.Set(headerAttempt, strconv.Itoa(m.Attempt))
	replayed(to, m)
	to.Set("User-Agent", "semel")
	sign(to, h.config.Secrets, key, now, m.Body)
	return request, nil
}

// replayed adds the replay of the message, if any, and whether effects are allowed.
func replayed(to http.Header, m *semel.Message) {
	r, is := m.Replay()
	if !is {
		return
	}
	to.Set(headerReplay, strconv.FormatInt(r.ID, 10))
	to.Set(headerEffects, map[bool]string{false: "none", true: "real"}[r.Effects])
}

func (h *Handler) keyOf(m *semel.Message) string { return Key(m, h.config.Intents) }

// Key returns the idempotency key of the call for m, which has its Identity. intent reports that m is
// an intent, which may have its own key.
func Key(m *semel.Message, intent bool) string {
	if intent {
		return m.IntentKey(step)
	}
	return m.IdempotencyKey(step)
}

// passOn adds the headers of the message that the policy names.
func (h *Handler) passOn(to http.Header, m *semel.Message) error {
	for _, name := range h.config.Pass {
		for _, header := range m.Headers {
			if !strings.EqualFold(header.Name, name) {
				continue
			}
			if !sendable(header.Value) {
				return fmt.Errorf("the header %s of the message has a value that cannot be sent in a request header", name)
			}
			to.Add(name, string(header.Value))
		}
	}
	return nil
}

// trace adds the trace of a message. Values that cannot be sent are left out.
func trace(to http.Header, m *semel.Message) {
	for _, name := range kept {
		if v, ok := m.Headers.Get(name); ok && sendable(v) {
			to.Set(name, string(v))
		}
	}
	if to.Get("traceparent") == "" {
		return // a tracestate alone means nothing
	}
	for _, header := range m.Headers {
		if strings.EqualFold(header.Name, "tracestate") && sendable(header.Value) {
			to.Add("tracestate", string(header.Value))
		}
	}
}

// The attributes of a message that is not a CloudEvent: CloudEvents requires an id, a source and a
// type.
const (
	typeOfNone   = "semel.message"
	sourceOfNone = "semel"
)

// event adds the attributes according to the HTTP Protocol Binding for CloudEvents 1.0.2
// (https://github.com/cloudevents/spec, section 3.1).
func event(to http.Header, m *semel.Message) {
	attribute := func(name, value string) {
		if value != "" {
			to.Set("ce-"+name, encoded(value))
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

// contentType returns the message's content type, or JSON if its body is JSON; empty if unknown.
func contentType(m *semel.Message) string {
	for _, name := range [...]string{"ce-datacontenttype", "content-type"} {
		if v, ok := m.Headers.Get(name); ok && len(v) > 0 && sendable(v) {
			return string(v)
		}
	}
	if json.Valid(m.Body) {
		return "application/json"
	}
	return ""
}

// encoded returns an attribute as a header value: characters other than printable ASCII, and the
// blank, the quote and the percent sign, are percent-encoded as UTF-8.
func encoded(value string) string {
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
