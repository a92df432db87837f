package file

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/internal/structured"
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

// whole reports whether a line without its end can be taken for complete:
// nothing that may follow in it makes another message of an object or an array.
func (c *decoder) whole(l line) bool {
	if l.length > int64(len(l.text)) {
		return false
	}
	document, err := c.parser.Parse(l.text)
	if err != nil {
		return false
	}
	kind := document.Root().Kind()
	return kind == strictjson.Object || kind == strictjson.Array
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
		return structured.Event(m, document.Root())
	}
	m.Body = text
	return nil
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
			err = errors.New("an envelope has the members key, headers and body; the line has another: " + structured.Quoted(name))
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
		return structured.Own(v), nil
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
			return nil, errors.New("a header's value must be a string: " + structured.Quoted(name))
		}
		headers = append(headers, semel.Header{Name: name, Value: structured.Own(value)})
	}
	return headers, structured.Distinct(headers)
}
