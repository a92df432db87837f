package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// Print prints a ledger as JSON, or as a table with the names of the JSON fields.
func Print(w io.Writer, l Ledger, asJSON bool) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if asJSON {
		_, err := w.Write(append(text, '\n'))
		return err
	}
	fields, err := fieldsOf(text)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, f := range fields {
		fmt.Fprintf(table, "%s\t  %s\t\n", f[0], f[1])
	}
	return table.Flush()
}

// fieldsOf returns the names and values of a JSON object's fields, in their order. A field that is itself an object is
// replaced by its fields.
func fieldsOf(object []byte) (fields [][2]string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		text := strings.ReplaceAll(name.(string), "_", " ")
		if value[0] != '{' {
			fields = append(fields, [2]string{text, strings.Trim(string(value), `"`)})
			continue
		}
		inner, err := fieldsOf(value)
		if err != nil {
			return nil, err
		}
		for _, f := range inner {
			fields = append(fields, [2]string{text + ": " + f[0], f[1]})
		}
	}
	return fields, nil
}

// Fields is a report whose fields have a chosen order.
type Fields []Field

// Field is one field of a Fields report.
type Field struct {
	Name  string
	Value any
}

// Add adds a field.
func (f *Fields) Add(name string, value any) { *f = append(*f, Field{name, value}) }

// MarshalJSON implements json.Marshaler.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		text, err := json.Marshal(field.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", field.Name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Seconds is a number of seconds that JSON shows rounded to tenths.
type Seconds float64

// Since returns the seconds since the time start.
func Since(start time.Time) Seconds { return Seconds(time.Since(start).Seconds()) }

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(math.Round(float64(s)*10) / 10) }
