package file

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/strictjson"
)

// delivered is a message and what Settle needs to know of it. It is the
// delivery's Handle.
type delivered struct {
	message    semel.Message
	from       *generation
	start, end int64
}

// decoder makes messages of lines.
type decoder struct {
	format Format
	topic  string
	parser strictjson.Parser
}

// decode makes a delivery's message of a line, and says why if it cannot.
func (c *decoder) decode(l line) (*delivered, semel.Reason) {
	d := &delivered{start: l.start, end: l.end}
	m := &d.message
	m.Topic = c.topic
	m.Origin = semel.Origin{Partition: -1, Offset: l.start}
	text := bytes.Clone(l.text)
	if l.length > int64(len(text)) {
		m.Body = text
		m.Headers = semel.Headers{
			{Name: HeaderLength, Value: strconv.AppendInt(nil, l.length, 10)},
			{Name: HeaderDetail, Value: []byte("the line is longer than the limit; its first 64 KiB are kept")},
		}
		return d, semel.ReasonTooLarge
	}
	if err := c.decodeText(m, text); err != nil {
		m.Key, m.Body = nil, text
		m.Headers = semel.Headers{{Name: HeaderDetail, Value: []byte(err.Error())}}
		return d, semel.ReasonMalformed
	}
	return d, semel.ReasonNone
}

func (c *decoder) decodeText(m *semel.Message, text []byte) error {
	document, err := c.parser.Parse(text)
	if err != nil {
		return err
	}
	switch c.format {
	case Envelope:
		return decodeEnvelope(m, document.Root())
	case CloudEvents:
		return decodeEvent(m, document.Root())
	}
	m.Body = text
	return nil
}

// own is a value's text in memory that the message owns: the parser keeps what
// it had to decode, which is shorter than what stands in the line, in its own.
func own(v strictjson.Value) []byte {
	text := v.Text()
	if v.Kind() == strictjson.String && len(text) != len(v.Raw())-len(`""`) {
		return bytes.Clone(text)
	}
	return text
}

// decodeEnvelope reads {"key": "…", "headers": {"name": "value"}, "body": …}.
func decodeEnvelope(m *semel.Message, root strictjson.Value) error {
	if root.Kind() != strictjson.Object {
		return errors.New("an envelope is a JSON object, and the line is not")
	}
	for name, v := range root.Members() {
		var err error
		switch name {
		case "key":
			m.Key, err = envelopeKey(v)
		case "headers":
			m.Headers, err = envelopeHeaders(v)
		case "body":
			m.Body = v.Raw()
		default:
			err = errors.New("an envelope has the members key, headers and body; the line has another: " + quoted(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func envelopeKey(v strictjson.Value) ([]byte, error) {
	switch v.Kind() {
	case strictjson.String:
		return own(v), nil
	case strictjson.Null:
		return nil, nil
	}
	return nil, errors.New("the envelope's key must be a string or null")
}

func envelopeHeaders(v strictjson.Value) (semel.Headers, error) {
	switch v.Kind() {
	case strictjson.Null:
		return nil, nil
	case strictjson.Object:
	default:
		return nil, errors.New("the envelope's headers must be an object")
	}
	var headers semel.Headers
	for name, value := range v.Members() {
		if value.Kind() != strictjson.String {
			return nil, errors.New("a header's value must be a string: " + quoted(name))
		}
		headers = append(headers, semel.Header{Name: name, Value: own(value)})
	}
	return headers, distinct(headers)
}

// distinct refuses names that differ only in case, as headers are looked up
// without regard to it: which of them an identity is made of must not depend
// on their order.
func distinct(headers semel.Headers) error {
	for i := range headers {
		for j := range i {
			if strings.EqualFold(headers[i].Name, headers[j].Name) {
				return errors.New("two names differ only in case: " + quoted(headers[i].Name))
			}
		}
	}
	return nil
}

// quoted shows a name, or its beginning.
func quoted(name string) string {
	if len(name) > 64 {
		return strconv.Quote(strings.ToValidUTF8(name[:64], "")) + "…"
	}
	return strconv.Quote(name)
}
