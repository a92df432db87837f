// Package structured strictly parses events in the JSON format. The package rejects texts that two parsers could
// understand differently.
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

// The format is JSON Event Format for CloudEvents 1.0, section 3 (https://github.com/cloudevents/spec): members
// are attributes; null means that an attribute is not set; strings, booleans and 32-bit integers are JSON values;
// the data is in data or in data_base64.

// defined contains the attributes that the specification defines, and their headers. The values of the defined
// attributes are strings.
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

// Read sets m to the event in text. After Read, the room knows the position of the body in text.
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

// Event converts an event's attributes to headers with the prefix ce-, and its data to the body. An error
// contains no values of the event. After an error, the caller must discard the contents of m.
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

// required returns an error if the event lacks an attribute that CloudEvents requires, except id and source. A message
// without id or source has no identity, which other code reports.
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

// checkExtension checks the name and value of an extension attribute. The specification allows only lower-case letters
// and digits in names. checkExtension is less strict, because producers use other names. checkExtension rejects a name
// that differs from a defined attribute only in case, because header names are not case-sensitive. It also rejects a
// value that has no defined text.
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

// Own returns the text of a value in separate memory, because the parser reuses the memory of decoded texts.
func Own(v strictjson.Value) []byte {
	text := v.Text()
	if v.Kind() == strictjson.String && len(text) != len(v.Raw())-len(`""`) {
		return bytes.Clone(text)
	}
	return text
}

// Distinct returns an error if two names differ only in case. Header names are not case-sensitive, so the identity
// could depend on the order of two names that differ only in case.
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

// Quoted returns a name in quotes. A long name is truncated.
func Quoted(name string) string {
	if len(name) > 64 {
		return strconv.Quote(strings.ToValidUTF8(name[:64], "")) + "…"
	}
	return strconv.Quote(name)
}
