package strictjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAmbiguousTextsAreRejectedWithTheirOffset(t *testing.T) {
	refused := []struct {
		name, text string
		offset     int
	}{
		{"nothing", "", 0},
		{"only space", " \n", 2},
		{"text behind", `{} {}`, 3},
		{"a byte-order mark", "\xef\xbb\xbf{}", 0},
		{"trap_81_a_lone_high_surrogate", `"a\ud800"`, 2},
		{"trap_81_a_high_surrogate_before_another_letter", `"\ud800\u0041"`, 1},
		{"trap_81_a_lone_low_surrogate", `"\udc00"`, 1},
		{"trap_81_two_high_surrogates", `"\ud800\ud800"`, 1},
		{"trap_81_invalid_utf8", "\"a\xff\"", 2},
		{"trap_81_a_surrogate_in_utf8", "\"\xed\xa0\x80\"", 1},
		{"trap_81_overlong_utf8", "\"\xc0\x80\"", 1},
		{"a_repeated_name", `{"a":1,"a":2}`, 7},
		{"a_repeated_name_in_other_spelling", `{"a":1,"\u0061":2}`, 7},
		{"a_repeated_name_deep_inside", `[{"x":{"a":1,"b":0,"a":2}}]`, 19},
		{"an unknown escape", `"\x"`, 1},
		{"a short escape", `"\u12"`, 1},
		{"a bare control character", "\"a\nb\"", 2},
		{"NUL outside of a string", "\x00", 0},
		{"an unfinished string", `"abc`, 4},
		{"a backslash at the end", `"abc\`, 5},
		{"an unfinished array", `[1,2`, 4},
		{"an unfinished object", `{"a":1`, 6},
		{"a comma too many", `[1,]`, 3},
		{"a member without value", `{"a"}`, 4},
		{"a member without name", `{1:2}`, 1},
		{"a wrong word", `nul`, 0},
		{"a leading zero", `01`, 0},
		{"a bare minus", `-`, 0},
		{"a point without digits", `1.`, 0},
		{"an exponent without digits", `1e+`, 0},
		{"a plus", `+1`, 0},
		{"not a number", `NaN`, 0},
		{"an exponent no one can mean", `1e100000000000000000`, 0},
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			err := Check([]byte(c.text))
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("%q was accepted (%v)", c.text, err)
			}
			if fault.Offset != c.offset {
				t.Errorf("%q: offset %d, want %d (%v)", c.text, fault.Offset, c.offset, err)
			}
		})
	}
}

func TestErrorsContainNothingFromTheText(t *testing.T) {
	err := Check([]byte(`{"password-hunter2":1,"password-hunter2":2}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	if err := Check(nested(MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if err := Check(nested(MaxDepth + 1)); err == nil {
		t.Errorf("depth %d was accepted", MaxDepth+1)
	}
	if err := Check(bytes.Repeat([]byte(`{"a":`), 1_000_000)); err == nil {
		t.Error("a million levels were accepted")
	}
}

func TestAPointerFindsTheValueItNames(t *testing.T) {
	// The document and most pointers are from RFC 6901, section 5.
	const text = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,
		"deep":{"x":[{"y": {"z":[ ]} },null,true,1.50]},"esc":"a\u00e4\ud83d\ude00\n","~1":9}`
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{
		"/foo": `["bar","baz"]`, "/foo/0": "bar", "/foo/1": "baz", "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3",
		"/g|h": "4", `/i\j": `[:4]: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/~01": "9",
		"/deep/x/0/y": `{"z":[ ]}`, "/deep/x/0/y/z": "[ ]", "/deep/x/1": "null", "/deep/x/2": "true", "/deep/x/3": "1.50",
		"/esc": "aä😀\n", "": text,
	}
	for pointer, want := range found {
		v, ok := d.Lookup(mustPointer(t, pointer))
		if !ok || string(v.Text()) != want {
			t.Errorf("%q: %v, want %q", pointer, ok, want)
		}
	}
	for _, pointer := range []string{"/nope", "/foo/2", "/foo/-", "/foo/00", "/foo/+0", "/foo/x", "/foo/0/0", "//", "/foo/99999999999"} {
		if v, ok := d.Lookup(mustPointer(t, pointer)); ok {
			t.Errorf("%q found %q", pointer, v.Raw())
		}
	}
	for _, malformed := range []string{"foo", "/a~", "/a~2"} {
		if _, err := ParsePointer(malformed); err == nil {
			t.Errorf("pointer %q was accepted", malformed)
		}
	}
}

func mustPointer(t *testing.T, s string) Pointer {
	t.Helper()
	p, err := ParsePointer(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMembersComeInTheOrderOfTheSource(t *testing.T) {
	d, err := Parse([]byte(`{"z":{"n":[1,{"q":2}]},"a":"x\ty","\u006d":null}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, v := range d.Root().Members() {
		got = append(got, name+"="+string(v.Raw()))
	}
	if want := `z={"n":[1,{"q":2}]} a="x\ty" m=null`; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestANumberHasOneDecimal(t *testing.T) {
	for number, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "-0e5": "0", "0E-400000": "0",
		"1": "1", "1.0": "1", "1e0": "1", "10e-1": "1", "0.1e1": "1", "-1.50": "-1.5", "15e-1": "1.5",
		"100": "100", "1e2": "100", "1E+2": "100", "0.01": "0.01", "1e-2": "0.01", "123.4560": "123.456",
		"9007199254740992": "9007199254740992", "9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740993",
		"1e20": "100000000000000000000", "100000000000000000000": "100000000000000000000",
		"1e21": "1e21", "1000000000000000000000": "1e21", "1e400000": "1e400000", "10e399999": "1e400000", "-1.5e-400000": "-15e-400001",
		"0.00000000000000000001": "0.00000000000000000001", "1e-22": "1e-22", "1e00000000000000000000000003": "1000",
	} {
		if got := string(AppendDecimal(nil, []byte(number))); got != want {
			t.Errorf("%s is %s, want %s", number, got, want)
		}
	}
}

func canonicalSum(t testing.TB, text []byte) string {
	d, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	h := sha256.New()
	d.Root().WriteCanonical(h)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestTheCanonicalFormDoesNotDependOnSpelling(t *testing.T) {
	equal := [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1.0 } `, `{"\u0062":[true,null],"\u0061":10e-1}`},
		{`"ä😀/"`, `"\u00e4\ud83d\ude00\/"`},
		{`1e400000`, `10E+399999`},
		{`[]`, `[ ]`}, {`{}`}, {`[[]]`}, {`[{}]`}, {`[[],[]]`}, {`[[[]]]`}, {`""`}, {`null`}, {`"null"`}, {`true`}, {`false`}, {`"true"`},
		{`0`, `-0`, `-0.0`}, {`"0"`}, {`9007199254740992`}, {`9007199254740993`}, {`1`}, {`"1"`}, {`["a","bc"]`}, {`["ab","c"]`}, {`["a",["bc"]]`},
		{`{"a":"b"}`}, {`["a","b"]`}, {`{"a":{"b":1}}`}, {`{"a":{},"b":1}`}, {`"é"`}, {`"e\u0301"`}, {`"a"`}, {`"A"`}, {`"a "`}, {`"a\u0000"`},
	}
	seen := map[string]string{}
	for _, class := range equal {
		first := canonicalSum(t, []byte(class[0]))
		for _, other := range class[1:] {
			if canonicalSum(t, []byte(other)) != first {
				t.Errorf("%s and %s are one value with two forms", class[0], other)
			}
		}
		if before, ok := seen[first]; ok {
			t.Errorf("%s and %s are two values with one form", before, class[0])
		}
		seen[first] = class[0]
	}
}

func FuzzStrict(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e4"],"b":{"a":null}}`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `1e999`, `[[[[]]]]`, ` true `, `{"":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err == nil && !json.Valid(text) {
			t.Fatalf("accepted what encoding/json refuses: %q", text)
		}
		if err != nil {
			if json.Valid(text) && !isOurRule(text, err) {
				t.Fatalf("refused what encoding/json accepts: %q: %v", text, err)
			}
			return
		}
		again, err := json.Marshal(decoded(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if utf8.Valid(text) && canonicalSum(t, text) != canonicalSum(t, again) {
			t.Fatalf("%q and %q have two forms", text, again)
		}
		if !bytes.Equal(bytes.TrimSpace(text), d.Root().Raw()) {
			t.Fatalf("%q: root is %q", text, d.Root().Raw())
		}
	})
}

// isOurRule reports whether the text breaks a rule of this package that encoding/json does not have.
func isOurRule(text []byte, err error) bool {
	for _, rule := range []string{"invalid UTF-8", "a lone surrogate", "a repeated member name", "nested deeper", "exponent has more"} {
		if strings.Contains(err.Error(), rule) {
			return rule != "invalid UTF-8" || !utf8.Valid(text)
		}
	}
	return false
}

func decoded(t *testing.T, text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}
