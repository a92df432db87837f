package selectors

import (
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/strictjson"
)

// String returns the name of the kind.
func (k Kind) String() string {
	return enum.Name([]string{
		Missing: "missing", Null: "null", Bool: "boolean", Number: "number", String: "string",
		JSON: "object or array", Bytes: "bytes",
	}, k, "ValueKind")
}

// Kind is the kind of a selected value.
type Kind uint8

// The kinds of values.
const (
	// Missing, the zero value, means that there is no value.
	Missing Kind = iota
	// Null is a JSON null.
	Null
	// Bool is a JSON true or false.
	Bool
	// Number is a JSON number, or a partition or an offset.
	Number
	// String is text: a JSON string without quotes and escapes, an attribute, a topic, a constant.
	String
	// JSON is a JSON object or array, exactly as in the body.
	JSON
	// Bytes means any bytes: a header, a key, a whole body.
	Bytes
)

// Value is the value that a selector has found in a message. A Value shares the memory of the message and
// must not be changed.
type Value struct {
	kind Kind
	text []byte
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// IsMissing reports whether the message has no value where the selector points. A JSON null is not missing.
func (v Value) IsMissing() bool { return v.kind == Missing }

// IsNull reports whether the value is a JSON null.
func (v Value) IsNull() bool { return v.kind == Null }

// Bytes returns the bytes of the value: the text of a string, a number as the producer wrote it, true or
// false, or the JSON of an object or array. If the value is missing or null, Bytes returns nil.
func (v Value) Bytes() []byte {
	if v.kind == Missing || v.kind == Null {
		return nil
	}
	return v.text
}

// Text returns Bytes as a string.
func (v Value) Text() string { return string(v.Bytes()) }

// Bool reports whether the value is a JSON true.
func (v Value) Bool() bool { return v.kind == Bool && v.text[0] == 't' }

// Number returns a number exactly as the producer wrote it. If the value is not a number, Number returns "".
func (v Value) Number() string {
	if v.kind != Number {
		return ""
	}
	return string(v.text)
}

// Decimal returns a number as an exact decimal. The result does not depend on how the number is written: 1.0,
// 1 and 1e0 give "1". If more than 20 zeros would be needed, the result has an exponent. If the value is not
// a number, Decimal returns "".
func (v Value) Decimal() string {
	if v.kind != Number {
		return ""
	}
	return string(strictjson.AppendDecimal(nil, v.text))
}

// stringValue returns a text as a value. An empty text counts as missing.
func stringValue(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{String, []byte(s)}
}

// bytesValue returns bytes as a value. A nil slice counts as missing.
func bytesValue(b []byte) Value {
	if b == nil {
		return Value{}
	}
	return Value{Bytes, b[:len(b):len(b)]}
}

// kinds maps the kinds of JSON values to Kind. Index 0 means that there is no value.
var kinds = [...]Kind{
	Missing, strictjson.Null: Null, strictjson.Bool: Bool, strictjson.Number: Number,
	strictjson.String: String, strictjson.Array: JSON, strictjson.Object: JSON,
}

func jsonValue(v strictjson.Value) Value { return Value{kinds[v.Kind()], v.Text()} }
