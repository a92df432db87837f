package audit

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// written is an exported line of the audit chain, or the end of the chain, in JSON.
type written struct {
	Sequence int64     `json:"sequence,omitempty"`
	Sealed   int64     `json:"sealed_us,omitempty"`
	Keyed    bool      `json:"keyed,omitempty"`
	Act      *wroteAct `json:"act,omitempty"`
	Previous string    `json:"previous,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	End      *wroteEnd `json:"end,omitempty"`
}

// wroteAct is an audit record in JSON. Times are microseconds since 1970. A text that is not valid UTF-8, or that
// begins with "base64:", is written as "base64:" and its Base64 encoding.
type wroteAct struct {
	Number int64  `json:"number"`
	At     int64  `json:"at_us"`
	Row    int64  `json:"row,omitempty"`
	Verb   string `json:"verb"`
	Who    string `json:"who"`
	Why    string `json:"why"`
	Result string `json:"result"`
}

type wroteEnd struct {
	Sequence int64  `json:"sequence"`
	Keyed    bool   `json:"keyed,omitempty"`
	Hash     string `json:"hash"`
	Proof    string `json:"proof,omitempty"`
}

const encoded = "base64:"

func asText(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, encoded) {
		return s
	}
	return encoded + base64.StdEncoding.EncodeToString([]byte(s))
}

func ofText(s string) (string, error) {
	if rest, is := strings.CutPrefix(s, encoded); is {
		b, err := base64.StdEncoding.DecodeString(rest)
		return string(b), err
	}
	return s, nil
}

// WriteLine writes a line of the audit chain as a line of JSON.
func WriteLine(w io.Writer, s admin.Seal) error {
	return writeJSON(w, written{
		Sequence: s.Sequence, Sealed: s.At.UnixMicro(), Keyed: s.Keyed, Previous: hex.EncodeToString(s.Previous[:]), Hash: hex.EncodeToString(s.Hash[:]),
		Act: &wroteAct{
			Number: s.Act.Number, At: s.Act.At.UnixMicro(), Row: s.Act.Row,
			Verb: asText(s.Act.Verb), Who: asText(s.Act.Who), Why: asText(s.Act.Why), Result: asText(s.Act.Result),
		},
	})
}

// WriteEnd writes the end of the chain. Call WriteEnd after the last WriteLine.
func WriteEnd(w io.Writer, end admin.SealHead) error {
	e := wroteEnd{Sequence: end.Sequence, Keyed: end.Keyed, Hash: hex.EncodeToString(end.Hash[:])}
	if end.Proof != (admin.SealHash{}) {
		e.Proof = hex.EncodeToString(end.Proof[:])
	}
	return writeJSON(w, written{End: &e})
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// longestLine is the maximum number of bytes of an exported line of the audit chain.
const longestLine = 16 << 20

// Read reads an exported audit chain, calls the function each for every line, and returns the end of the chain. If the
// file ends before the end of the chain, the result end is nil. An error names the line of the file that cannot be
// read.
func Read(r io.Reader, each func(admin.Seal)) (end *admin.SealHead, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var w written
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.DisallowUnknownFields()
		err := d.Decode(&w)
		if err == nil && end != nil {
			err = errors.New("there is data after the end of the chain")
		}
		if err == nil && w.End != nil {
			end, err = w.End.end()
		} else if err == nil {
			var s admin.Seal
			if s, err = w.seal(); err == nil {
				each(s)
			}
		}
		if err != nil {
			return end, fmt.Errorf("line %d of the file was not written by semel audit export: %w", n, err)
		}
	}
	return end, lines.Err()
}

func (e *wroteEnd) end() (*admin.SealHead, error) {
	end := &admin.SealHead{Sequence: e.Sequence, Keyed: e.Keyed}
	var err error
	if end.Hash, err = parseHash(e.Hash); err == nil && e.Proof != "" {
		end.Proof, err = parseHash(e.Proof)
	}
	return end, err
}

func (w *written) seal() (s admin.Seal, err error) {
	if w.Act == nil {
		return s, errors.New("it has no change")
	}
	s = admin.Seal{Sequence: w.Sequence, At: time.UnixMicro(w.Sealed), Keyed: w.Keyed,
		Act: store.Act{Number: w.Act.Number, At: time.UnixMicro(w.Act.At), Row: w.Act.Row}}
	for _, text := range []struct {
		from string
		to   *string
	}{{w.Act.Verb, &s.Act.Verb}, {w.Act.Who, &s.Act.Who}, {w.Act.Why, &s.Act.Why}, {w.Act.Result, &s.Act.Result}} {
		if *text.to, err = ofText(text.from); err != nil {
			return s, err
		}
	}
	if s.Previous, err = parseHash(w.Previous); err == nil {
		s.Hash, err = parseHash(w.Hash)
	}
	return s, err
}
