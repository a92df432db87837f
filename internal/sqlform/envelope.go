package sqlform

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// envelope contains a message without key and body, as JSON that can represent any bytes. Other columns of the row
// repeat parts of the envelope, for people and for filters.
type envelope struct {
	Topic      text        `json:"topic,omitzero"`
	BrokerID   text        `json:"broker_id,omitzero"`
	RecordTime string      `json:"record_time,omitempty"` // earlier releases ignore this field
	Headers    []header    `json:"headers,omitempty"`
	Attributes *attributes `json:"attributes,omitempty"`
	Replay     *replay     `json:"replay,omitempty"` // earlier releases ignore this field
}

// replay identifies the replay that has written the row.
type replay struct {
	ID         int64 `json:"id"`
	Generation int64 `json:"generation,omitempty"`
	Effects    bool  `json:"effects,omitempty"`
}

type header struct {
	Name  text  `json:"name"`
	Value *text `json:"value,omitempty"` // nil stays nil
}

type attributes struct {
	ID         text   `json:"id,omitzero"`
	Source     text   `json:"source,omitzero"`
	Type       text   `json:"type,omitzero"`
	Subject    text   `json:"subject,omitzero"`
	DataSchema text   `json:"dataschema,omitzero"`
	Time       string `json:"time,omitempty"`
}

// text contains any bytes. In JSON, text is a string if the bytes are valid UTF-8. Bytes that are not valid UTF-8 are
// written as {"base64": "…"}.
type text string

type binary struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) && !strings.ContainsRune(string(t), 0) {
		return json.Marshal(string(t))
	}
	return json.Marshal(binary{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var b binary
		err := json.Unmarshal(data, &b)
		*t = text(b.Base64)
		return err
	}
	return json.Unmarshal(data, (*string)(t))
}

// Sealed returns the envelope of a message.
func Sealed(m *semel.Message) ([]byte, error) {
	e := envelope{Topic: text(m.Topic), BrokerID: text(m.Origin.BrokerID)}
	if at := m.Origin.Time(); !at.IsZero() {
		e.RecordTime = at.UTC().Format(time.RFC3339)
	}
	for _, h := range m.Headers {
		next := header{Name: text(h.Name)}
		if h.Value != nil {
			value := text(h.Value)
			next.Value = &value
		}
		e.Headers = append(e.Headers, next)
	}
	if a := m.Attributes; a != (semel.Attributes{}) {
		e.Attributes = &attributes{ID: text(a.ID), Source: text(a.Source), Type: text(a.Type),
			Subject: text(a.Subject), DataSchema: text(a.DataSchema)}
		if !a.Time.IsZero() {
			e.Attributes.Time = a.Time.Format(time.RFC3339Nano)
		}
	}
	if r, is := m.Replay(); is {
		e.Replay = &replay{r.ID, r.Generation, r.Effects}
	}
	return json.Marshal(e)
}

// Unseal restores in m the values that Sealed has written.
func Unseal(data []byte, m *semel.Message) error {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	m.Topic, m.Origin.BrokerID = string(e.Topic), string(e.BrokerID)
	for _, h := range e.Headers {
		next := semel.Header{Name: string(h.Name)}
		if h.Value != nil {
			next.Value = []byte(*h.Value)
		}
		m.Headers = append(m.Headers, next)
	}
	if r := e.Replay; r != nil {
		m.Replayed = &semel.Replay{ID: r.ID, Generation: r.Generation, Effects: r.Effects}
	}
	written, err := timeOf(e.RecordTime)
	if m.Origin.SetTime(written); err != nil || e.Attributes == nil {
		return err
	}
	a := e.Attributes
	m.Attributes = semel.Attributes{ID: string(a.ID), Source: string(a.Source), Type: string(a.Type),
		Subject: string(a.Subject), DataSchema: string(a.DataSchema)}
	m.Attributes.Time, err = timeOf(a.Time)
	return err
}

// timeOf parses a time. For an empty text, timeOf returns the zero time.
func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

// Plain replaces the characters of s that a database may reject in a text column.
func Plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// ErrorText truncates an error text to the length that a row stores.
func ErrorText(s string) string {
	s = Plain(s)
	if len(s) <= store.MaxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:store.MaxErrorText], "")
}
