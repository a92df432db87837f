package file

import (
	"bytes"
	"errors"
	"strconv"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/internal/structured"
)

// deliveryHandle is a message with the data that Settle needs. A deliveryHandle is the Handle of its delivery, and also
// the decoder of that delivery.
type deliveryHandle struct {
	message    semel.Message
	generation *generation
	start, end int64
	format     Format
	// The mutex decoding guards the result of decoding. A source that wraps this source may deliver one delivery twice,
	// and the two copies are decoded concurrently.
	decoding sync.Mutex
	// The field undecoded is true as long as the body is the undecoded line. The field refused is the reason if the
	// line could not be decoded.
	undecoded bool
	refused   semel.Reason
}

// decoder converts lines to messages.
type decoder struct {
	format Format
	topic  string
	parser strictjson.Parser
}

// begin converts a line to a message that is decoded later. begin refuses a line that is too long at once.
func (c *decoder) begin(l line) *deliveryHandle {
	d := &deliveryHandle{start: l.start, end: l.end, format: c.format, undecoded: true}
	m := &d.message
	m.Topic = c.topic
	m.Origin = semel.Origin{Partition: -1, Offset: l.start}
	m.Body = bytes.Clone(l.text)
	if l.length > int64(len(m.Body)) {
		m.Headers = semel.Headers{
			{Name: HeaderLength, Value: strconv.AppendInt(nil, l.length, 10)},
			{Name: HeaderDetail, Value: []byte("the line is longer than the limit; its first 64 KiB are kept")},
		}
		d.undecoded, d.refused = false, semel.ReasonTooLarge
	}
	return d
}

// Decode decodes the line in the body. The decoded message is never larger than the line, so Fetch can count
// the bytes of the line.
func (d *deliveryHandle) Decode(room *reading.Room, m *semel.Message) (refused semel.Reason, detail string) {
	d.decoding.Lock()
	defer d.decoding.Unlock()
	if d.undecoded {
		d.undecoded = false
		text := m.Body
		if err := d.decode(room, m); err != nil {
			m.Key, m.Body = nil, text
			m.Headers = semel.Headers{{Name: HeaderDetail, Value: []byte(err.Error())}}
			d.refused = semel.ReasonMalformed
		}
	}
	return d.refused, d.detail()
}

// copyForRedelivery returns a copy of a nacked message for its next delivery.
func (d *deliveryHandle) copyForRedelivery() *deliveryHandle {
	d.decoding.Lock()
	defer d.decoding.Unlock()
	return &deliveryHandle{
		message: d.message, generation: d.generation, start: d.start, end: d.end, format: d.format,
		undecoded: d.undecoded, refused: d.refused,
	}
}

// detail describes why a line was refused.
func (d *deliveryHandle) detail() string {
	if d.refused == reasonname.None {
		return ""
	}
	text, _ := d.message.Headers.Get(HeaderDetail)
	return string(text)
}

// isComplete reports whether a line without a line end is complete. A complete line is a JSON object or array, so
// further bytes cannot change its meaning.
func (c *decoder) isComplete(l line) bool {
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

func (d *deliveryHandle) decode(room *reading.Room, m *semel.Message) error {
	text := m.Body
	if d.format == CloudEvents {
		m.Body = nil
		return structured.Read(room, m, text)
	}
	document, err := room.Parse(text)
	if err != nil || d.format == JSON {
		return err
	}
	m.Body = nil
	return decodeEnvelope(room, m, document.Root())
}

// decodeEnvelope decodes a line of the form {"key": "…", "headers": {"name": "value"}, "body": …}.
func decodeEnvelope(room *reading.Room, m *semel.Message, root strictjson.Value) error {
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
			room.Became(v)
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
