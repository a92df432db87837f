package proof

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"

	"github.com/semel-go/semel/itest/ledger"
)

// Print prints a ledger, as JSON or as a table of the same fields under the same
// names.
func Print(w io.Writer, l Ledger, asJSON bool) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if asJSON {
		_, err := w.Write(append(text, '\n'))
		return err
	}
	lines, err := table(text)
	if err != nil {
		return err
	}
	return ledger.WriteTable(w, lines)
}

// table is the fields of an object in their order.
func table(object []byte) (lines []ledger.Line, err error) {
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
		lines = append(lines, ledger.Line{strings.ReplaceAll(name.(string), "_", " "), strings.Trim(string(value), `"`)})
	}
	return lines, nil
}

// Seconds are rounded, as nobody compares hundredths.
type Seconds float64

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(math.Round(float64(s)*10) / 10) }
