// Package structured reads what a message has inside its JSON form, strictly:
// what two readers could understand differently is refused.
package structured

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/cloudevents"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/strictjson"
)

// The format is the one of https://github.com/cloudevents/spec, JSON Event
// Format for CloudEvents 1.0, section 3: attributes are members; null means
// that an attribute is not set; strings, booleans and 32-bit integers are
// JSON's; the data is in data or in data_base64.

// defined are the attributes that the specification names and types, with
// their header. All of them are strings.
var defined = [...]struct{ name, header string }{
	{"id", "ce-id"},
	{"source", "ce-source"},
	{"type", "ce-type"},
	{"specversion", "ce-specversion"},
	{"subject", "ce-subject"},
	{"time", "ce-time"},
	{"datacontenttype", "ce-datacontenttype"},
	{"dataschema", "ce-dataschema"},
}

// Read makes a message of an event's text, in a room that then knows where the
// body stands in it.
func Read(room *reading.Room, m *semel.Message, text []byte) error {
	document, err := room.Parse(text)
	if err != nil {
		return err
	}
	if err = Event(m, document.Root()); err != nil {
		return err
	}
	if data, found := document.Root().Member("data"); found {
		room.Became(data)
	}
	return nil
}

// Event makes headers of an event's attributes, ce- before their names, and
// the body of its data. An error says nothing of values, and what m has then
// is to be replaced.
func Event(m *semel.Message, root strictjson.Value) error {
	if root.Kind() != strictjson.Object {
		return errors.New("an event is a JSON object, and this is none; a batch of events is one message each")
	}
	m.Headers = make(semel.Headers, 0, len(defined))
	hasData := false
	for name, v := range root.Members() {
		var err error
		switch name {
		case "data", "data_base64":
			if hasData {
				return errors.New("the event has both data and data_base64")
			}
			hasData = true
			m.Body, err = eventData(name, v)
		default:
			err = addAttribute(m, name, v)
		}
		if err != nil {
			return err
		}
	}
	if err := Distinct(m.Headers); err != nil {
		return err
	}
	return required(m.Headers)
}

// required refuses an event that lacks what CloudEvents requires besides id and
// source: a message without those has no identity, which is told by itself.
func required(headers semel.Headers) error {
	fault := cloudevents.Fault(func(name string) (string, bool) {
		text, set := headers.Get("ce-" + name)
		return string(text), set
	})
	if fault != "" {
		return errors.New(fault)
	}
	return nil
}

func eventData(name string, v strictjson.Value) ([]byte, error) {
	if name == "data" {
		return v.Raw(), nil
	}
	if v.Kind() != strictjson.String {
		return nil, errors.New("data_base64 must be a string")
	}
	data, err := base64.StdEncoding.DecodeString(string(v.Text()))
	if err != nil {
		return nil, errors.New("data_base64 is not base64 as RFC 4648 writes it, with padding")
	}
	return data, nil
}

func addAttribute(m *semel.Message, name string, v strictjson.Value) error {
	if v.Kind() == strictjson.Null {
		return nil
	}
	header := ""
	for i := range defined {
		if defined[i].name == name {
			header = defined[i].header
		}
	}
	switch {
	case header != "" && v.Kind() != strictjson.String:
		return errors.New("the attribute " + name + " must be a string")
	case header == "":
		if err := checkExtension(name, v); err != nil {
			return err
		}
		header = "ce-" + name
	}
	m.Headers = append(m.Headers, semel.Header{Name: header, Value: Own(v)})
	return nil
}

// checkExtension is milder than the specification, which allows lower-case
// letters and digits only: producers use others. It refuses a name that would
// be taken for a defined one, because headers are looked up without regard to
// case, and a value without a defined text.
func checkExtension(name string, v strictjson.Value) error {
	if name == "" {
		return errors.New("an attribute has no name")
	}
	for i := range defined {
		if strings.EqualFold(name, defined[i].name) {
			return errors.New("attribute names are lower-case: " + Quoted(name) + " is not " + defined[i].name)
		}
	}
	switch v.Kind() {
	case strictjson.String, strictjson.Bool:
		return nil
	case strictjson.Number:
		if _, err := strconv.ParseInt(string(v.Raw()), 10, 32); err == nil {
			return nil
		}
		return errors.New("an attribute that is a number must be an integer of 32 bits: " + Quoted(name))
	}
	return errors.New("an attribute must be a string, a boolean or an integer: " + Quoted(name))
}

// Own is a value's text in memory that the message owns: the parser keeps what
// it had to decode, which is shorter than what stands in the line, in its own.
func Own(v strictjson.Value) []byte {
	text := v.Text()
	if v.Kind() == strictjson.String && len(text) != len(v.Raw())-len(`""`) {
		return bytes.Clone(text)
	}
	return text
}

// Distinct refuses names that differ only in case, as headers are looked up
// without regard to it: which of them an identity is made of must not depend
// on their order.
func Distinct(headers semel.Headers) error {
	for i := range headers {
		for j := range i {
			if strings.EqualFold(headers[i].Name, headers[j].Name) {
				return errors.New("two names differ only in case: " + Quoted(headers[i].Name))
			}
		}
	}
	return nil
}

// Quoted shows a name, or its beginning.
func Quoted(name string) string {
	if len(name) > 64 {
		return strconv.Quote(strings.ToValidUTF8(name[:64], "")) + "…"
	}
	return strconv.Quote(name)
}
