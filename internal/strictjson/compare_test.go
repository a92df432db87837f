package strictjson

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// mutations is the number of texts for which the parser is compared with the reference parser. After a change of the
// parser run
//
//	go test ./internal/strictjson -run Mutated -mutations 3000000 -timeout 1h
//
// which takes some minutes.
var mutations = flag.Int("mutations", 20_000, "how many mutated texts to compare with the reference parser")

// comparison compares the parser with the reference, one text after the other.
type comparison struct {
	parser     Parser
	scratch    []byte
	paths      [][]string
	refused    map[string]int
	texts      int
	found, not int
}

// check compares all results for a text.
func (c *comparison) check(text []byte) error {
	c.texts++
	want, wantFault := refParse(text)
	d, err := c.parser.Parse(text)
	if wantFault != nil || err != nil {
		if wantFault != nil {
			c.refused[wantFault.Problem]++
		}
		if got, ok := err.(*Error); !ok || wantFault == nil || *got != *wantFault {
			return fmt.Errorf("%q: %v, the reference says %v", shown(text), err, wantFault)
		}
		return nil
	}
	var got bytes.Buffer
	d.Root().WriteCanonical(&got)
	if !bytes.Equal(got.Bytes(), want.canonical(nil, text)) {
		return fmt.Errorf("%q: the form is %q, the reference's %q", shown(text), shown(got.Bytes()), shown(want.canonical(nil, text)))
	}
	if err := sameValue(text, d.Root(), want); err != nil {
		return err
	}
	return c.lookUp(text, d, want)
}

func shown(text []byte) []byte { return text[:min(len(text), 2000)] }

// sameValue compares a value and everything in it, in the order of the text.
func sameValue(text []byte, v Value, want *refValue) error {
	wantText := want.decodedText
	if want.kind != String {
		wantText = text[want.start:want.end]
	}
	if v.Kind() != want.kind || !bytes.Equal(v.Raw(), text[want.start:want.end]) || !bytes.Equal(v.Text(), wantText) {
		return fmt.Errorf("%q: %d %q %q, the reference says %d, %d to %d, %q", shown(text), v.Kind(), v.Raw(), v.Text(), want.kind, want.start, want.end, wantText)
	}
	i := 0
	for name, member := range v.Members() {
		if i == len(want.names) || name != string(want.nameTexts[i]) {
			return fmt.Errorf("%q: member %d is %q", shown(text), i, name)
		}
		if err := sameValue(text, member, want.elements[i]); err != nil {
			return err
		}
		i++
	}
	for ; want.kind == Array; i++ {
		element, ok := v.element(i)
		if !ok {
			break
		}
		if err := sameValue(text, element, want.elements[i]); err != nil {
			return err
		}
	}
	if i != len(want.elements) {
		return fmt.Errorf("%q: %q has %d elements, the reference's %d", shown(text), v.Raw(), i, len(want.elements))
	}
	return nil
}

// lookUp looks up paths that exist in the text, and paths from earlier texts.
func (c *comparison) lookUp(text []byte, d *Document, want *refValue) error {
	c.paths = append(pathsIn(want, nil, nil), c.paths[:min(len(c.paths), 5)]...)
	c.paths = c.paths[max(0, len(c.paths)-30):]
	var pointers []Pointer
	for _, path := range c.paths {
		pointer := ""
		for _, name := range path {
			pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		}
		p, err := ParsePointer(pointer)
		if err != nil {
			return err
		}
		pointers = append(pointers, p)
	}
	found := make([]Found, len(pointers))
	c.scratch = Find(text, pointers, found, c.scratch[:0])
	for i, path := range c.paths {
		v, ok := d.Lookup(pointers[i])
		wanted := want.lookup(path)
		if ok != (wanted != nil) || (found[i].Kind != 0) != ok {
			return fmt.Errorf("%q, %q: %v, found %v, the reference says %v", shown(text), path, ok, found[i].Kind, wanted != nil)
		}
		if !ok {
			c.not++
			continue
		}
		c.found++
		if err := sameValue(text, v, wanted); err != nil {
			return err
		}
		if f := found[i]; f.Kind != v.Kind() || !bytes.Equal(f.Raw, v.Raw()) || &f.Raw[0] != &v.Raw()[0] || !bytes.Equal(f.Text, v.Text()) {
			return fmt.Errorf("%q, %q: found %d %q %q", shown(text), path, f.Kind, f.Raw, f.Text)
		}
	}
	return nil
}

// pathsIn lists the paths to all values.
func pathsIn(v *refValue, path []string, paths [][]string) [][]string {
	paths = append(paths, path)
	for i, element := range v.elements {
		name := fmt.Sprint(i)
		if v.kind == Object {
			name = string(v.nameTexts[i])
		}
		paths = pathsIn(element, append(path[:len(path):len(path)], name), paths)
	}
	return paths
}

// pieces are texts that the test inserts into other texts. Each piece made an earlier version of the parser fail.
var pieces = []string{
	"{", "}", "[", "]", ":", ",", "\"", "\\", "\\\"", "\\\\", "\\u", "\\u0061", "\\ud800", "\\udc00", "\\ud83d\\ude00", "\\n", "\\/", "\\x",
	"\x00", "\x1f", " ", "\t", "\n", "\r", "\x7f", "\x80", "\xbf", "\xc0\x80", "\xc3", "\xc3\xa9", "\xe2\x82\xac", "\xed\xa0\x80", "\xef\xbb\xbf", "\xf0\x9f\x98\x80", "\xf4\x90\x80\x80", "\xff",
	"0", "-", "-0", "-0.0", ".", "e", "E+1", "e-1", "1e400000", "1e99999999999999999", "1e100000000000000000", "123456789012345678901", "0.10", "00", "1.", "1e",
	"true", "false", "null", "tru", "nulll", "NaN", "{}", "[]", "\"\"", `"a":1,`, `"a":`, `"\u0061":1,`, `"abcdefgh":1,`, `"abcdefgh\u0000":1,`, `"abcdefg":1,`, `"a\u0000":1,`, `"":0,`,
	"        ", "abcdefgh", "\"abcdefgh\"", "\"1234567\"", "\"12345678\"", "\"123456789\"",
}

// repeat repeats a name of an object in the text. The repeated name can be written with escapes.
func repeat(r *rand.Rand, text []byte) []byte {
	v, fault := refParse(text)
	if fault != nil {
		return text
	}
	for len(v.elements) > 0 {
		i := r.IntN(len(v.elements))
		if v.kind == Object && r.IntN(3) > 0 {
			w := writer{Rand: r}
			w.text(string(v.nameTexts[i]))
			at := v.names[r.IntN(len(v.names))]
			return splice(text, at, at, w.String()+":null,")
		}
		v = v.elements[i]
	}
	return text
}

// mutate changes a text in a few places.
func mutate(r *rand.Rand, text []byte) []byte {
	if r.IntN(10) == 0 {
		return repeat(r, text)
	}
	for range 1 + r.IntN(4) {
		at := r.IntN(len(text) + 1)
		end := at + r.IntN(min(len(text)-at, 12)+1)
		switch r.IntN(7) {
		case 0: // insert a piece, or replace a part by a piece
			text = splice(text, at, end*r.IntN(2), pieces[r.IntN(len(pieces))])
		case 1:
			text = splice(text, at, at, pieces[r.IntN(len(pieces))])
		case 2: // remove a part
			text = splice(text, at, end, "")
		case 3: // repeat a part, at the same place or at another
			to := r.IntN(len(text) + 1)
			text = splice(text, to, to, string(text[at:end]))
		case 4:
			if at < len(text) {
				text = bytes.Clone(text)
				text[at] ^= 1 << r.IntN(8)
			}
		case 5:
			if at < len(text) {
				text = bytes.Clone(text)
				text[at] = byte(r.IntN(256))
			}
		case 6: // cut off the end; usually a short part
			if r.IntN(4) == 0 {
				text = text[:at]
			} else {
				text = text[:len(text)-min(len(text), r.IntN(4))]
			}
		}
	}
	return text
}

func splice(text []byte, start, end int, piece string) []byte {
	out := append(append([]byte{}, text[:start]...), piece...)
	return append(out, text[max(start, end):]...)
}

func TestMutatedTextsMatchTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	seeds := [][]byte{body(), bodies()[0].text, []byte(`{"a":1,"b":[true,null],"":"\u00e4"}`)}
	c := comparison{refused: map[string]int{}}
	for i := range *mutations {
		if i%8 == 0 { // replace a text
			seed := spelled(r, []any{value(r, 3), map[string]any{word(r): value(r, 2), word(r) + "abcdefg": value(r, 1+r.IntN(3))}})
			if len(seeds) < 300 {
				seeds = append(seeds, seed)
			} else {
				seeds[3+r.IntN(len(seeds)-3)] = seed
			}
		}
		text := seeds[r.IntN(len(seeds))]
		if i%500 == 0 {
			text = webhook
		}
		if i%10 != 0 {
			text = mutate(r, text)
		}
		if err := c.check(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d texts; %d values found, %d missed; refused: %v", c.texts, c.found, c.not, c.refused)
	for _, problem := range problems {
		if c.refused[problem] == 0 {
			t.Errorf("no text was refused for: %s", problem)
		}
	}
	if c.found == 0 || c.not == 0 {
		t.Errorf("%d values found, %d missed", c.found, c.not)
	}
}

// problems are the faults for which mutated texts are rejected. The nesting depth has its own test.
var problems = []string{
	"text after the value", "the text ends where a value is expected", "a byte-order mark", "no value begins here",
	"neither a comma nor the closing bracket", "a member name is expected here", "a colon is expected here", "a repeated member name",
	"a control character in a string; it must be escaped", "invalid UTF-8", "the text ends inside a string", "an unknown escape",
	"four hexadecimal digits must follow \\u", "a lone surrogate", "a malformed number", "a number whose exponent has more than 17 digits",
}

func FuzzReference(f *testing.F) {
	for _, seed := range append(pieces, string(body()), `{"abcdefgh":1,"abcdefg\u0000":[-0.10e5,"\ud83d\ude00"]}`) {
		f.Add([]byte(seed))
	}
	c := newComparison()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := c.check(text); err != nil {
			t.Fatal(err)
		}
	})
}
