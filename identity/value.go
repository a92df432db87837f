package identity

import (
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/strictjson"
)

// String says what kind of value it is.
func (k ValueKind) String() string {
	return enum.Name([]string{
		ValueMissing: "missing", ValueNull: "null", ValueBool: "boolean", ValueNumber: "number", ValueString: "string",
		ValueJSON: "object or array", ValueBytes: "bytes",
	}, k, "ValueKind")
}

// ValueKind says what a selector found.
type ValueKind uint8

// The kinds of values.
const (
	// ValueMissing: there is nothing at this place. The zero value.
	ValueMissing ValueKind = iota
	// ValueNull is a JSON null.
	ValueNull
	// ValueBool is a JSON true or false.
	ValueBool
	// ValueNumber is a JSON number, or a partition or an offset.
	ValueNumber
	// ValueString is text: a JSON string without quotes and escapes, an
	// attribute, a topic, a constant.
	ValueString
	// ValueJSON is a JSON object or array, as it stands in the body.
	ValueJSON
	// ValueBytes are any bytes: a header, a key, a whole body.
	ValueBytes
)

// Value is what a selector found in a message. It shares the message's memory
// and must not be changed.
type Value struct {
	kind ValueKind
	text []byte
}

// Kind says what the value is.
func (v Value) Kind() ValueKind { return v.kind }

// IsMissing reports whether there is nothing at the selected place. A JSON
// null is not missing.
func (v Value) IsMissing() bool { return v.kind == ValueMissing }

// IsNull reports whether the value is a JSON null.
func (v Value) IsNull() bool { return v.kind == ValueNull }

// Bytes returns the value byte for byte: the text of a string, a number as the
// producer wrote it, true, false, the JSON of an object or array; nil if it is
// missing or null.
func (v Value) Bytes() []byte {
	if v.kind == ValueMissing || v.kind == ValueNull {
		return nil
	}
	return v.text
}

// Text is Bytes as a string.
func (v Value) Text() string { return string(v.Bytes()) }

// Bool reports whether the value is a JSON true.
func (v Value) Bool() bool { return v.kind == ValueBool && v.text[0] == 't' }

// Number returns a number as the producer wrote it, with every digit; "" if
// the value is no number.
func (v Value) Number() string {
	if v.kind != ValueNumber {
		return ""
	}
	return string(v.text)
}

// Decimal returns a number as an exact decimal that is the same for every way
// to write it: 1.0, 1 and 1e0 are "1". Numbers that would need more than 20
// zeros to be written in full keep an exponent. "" if the value is no number.
func (v Value) Decimal() string {
	if v.kind != ValueNumber {
		return ""
	}
	return string(strictjson.AppendDecimal(nil, v.text))
}

// stringValue is a text; an empty one is missing.
func stringValue(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{ValueString, []byte(s)}
}

// bytesValue are bytes; nil is missing.
func bytesValue(b []byte) Value {
	if b == nil {
		return Value{}
	}
	return Value{ValueBytes, b[:len(b):len(b)]}
}

// kinds are those of JSON's values; the first is of none.
var kinds = [...]ValueKind{
	ValueMissing, strictjson.Null: ValueNull, strictjson.Bool: ValueBool, strictjson.Number: ValueNumber,
	strictjson.String: ValueString, strictjson.Array: ValueJSON, strictjson.Object: ValueJSON,
}

func jsonValue(v strictjson.Value) Value { return Value{kinds[v.Kind()], v.Text()} }
