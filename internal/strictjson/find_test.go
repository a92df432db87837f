package strictjson

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pathsOf returns pointers to the values in v, and some pointers to values that do not exist.
func pathsOf(r *rand.Rand, v Value, path string) []string {
	paths := []string{path, path + "/" + word(r)}
	switch v.Kind() {
	case Object:
		for name, member := range v.Members() {
			paths = append(paths, pathsOf(r, member, path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))...)
		}
	case Array:
		for i := 0; ; i++ {
			element, ok := v.element(i)
			if !ok {
				break
			}
			paths = append(paths, pathsOf(r, element, fmt.Sprintf("%s/%d", path, i))...)
		}
	}
	return paths
}

// checkFound compares the results of Find with the results of Lookup.
func checkFound(t *testing.T, d *Document, pointers []Pointer, scratch []byte) []byte {
	t.Helper()
	found := make([]Found, len(pointers))
	scratch = Find(d.source, pointers, found, scratch)
	for i, p := range pointers {
		var want Found
		if v, ok := d.Lookup(p); ok {
			want = Found{v.Kind(), v.Raw(), v.Text()}
		}
		got := found[i]
		if got.Kind != want.Kind || !bytes.Equal(got.Raw, want.Raw) || !bytes.Equal(got.Text, want.Text) {
			t.Fatalf("%q, %v: %d %q %q, want %d %q %q", d.source, p, got.Kind, got.Raw, got.Text, want.Kind, want.Raw, want.Text)
		}
	}
	return scratch
}

func TestFindMatchesLookup(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var scratch []byte
	for range 2000 {
		d, err := Parse(spelled(r, value(r, 4)))
		if err != nil {
			t.Fatal(err)
		}
		paths := pathsOf(r, d.Root(), "")
		var all []Pointer
		for range 1 + r.IntN(100) {
			p, err := ParsePointer(paths[r.IntN(len(paths))])
			if err == nil { // the random word may contain a tilde
				all = append(all, p)
			}
		}
		scratch = checkFound(t, d, all, scratch[:0])
		checkFound(t, d, all[:min(len(all), 1)], nil)
	}
}

func TestQuotesInSkippedValues(t *testing.T) {
	wanted, err := ParsePointer("/wanted")
	if err != nil {
		t.Fatal(err)
	}
	for before := range 20 {
		for backslashes := range 5 {
			hidden := strings.Repeat(`\\`, backslashes) + `\"`
			for _, form := range []string{`{"skipped":%s,"wanted":1}`, `{"skipped":[%s],"wanted":1}`} {
				text := fmt.Sprintf(form, `"`+strings.Repeat("x", before)+hidden+`],\"wanted\":2"`)
				d, err := Parse([]byte(text))
				if err != nil {
					t.Fatal(text, err)
				}
				checkFound(t, d, []Pointer{wanted}, nil)
			}
		}
	}
}

func TestFindClearsEarlierResults(t *testing.T) {
	found := []Found{{Kind: Number, Raw: []byte("1"), Text: []byte("1")}}
	p, err := ParsePointer("/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if Find([]byte(`{"a":1}`), []Pointer{p}, found, nil); found[0].Kind != 0 || found[0].Raw != nil {
		t.Errorf("%+v", found[0])
	}
}

func TestAProofHoldsForTheParsedBytes(t *testing.T) {
	text := []byte(` {"a":[1,2],"b":"[1,2]"} `)
	d, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := d.Lookup(mustPointer(t, "/a"))
	if !d.Proof().Holds(text) || !a.Proof().Holds(a.Raw()) || !d.Root().Proof().Holds(text[1:len(text)-1]) {
		t.Error("what was parsed is not proven")
	}
	for _, other := range [][]byte{nil, {}, text[:len(text)-1], text[1:], bytes.Clone(text), a.Raw()} {
		if d.Proof().Holds(other) {
			t.Errorf("%q is proven", other)
		}
	}
	if (Proof{}).Holds(nil) || (Proof{}).Holds(text) || (Proof{}).Holds(text[:0]) {
		t.Error("no proof proves something")
	}
}

func TestFindEndsForAnyText(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	pointers := []Pointer{mustPointer(t, "/1/a"), mustPointer(t, "/a/0"), mustPointer(t, "/a/b/1")}
	found := make([]Found, len(pointers))
	for range 20_000 {
		text := make([]byte, 1+r.IntN(24))
		for i := range text {
			text[i] = `[]{},:"\\ab01 `[r.IntN(14)]
		}
		func() {
			defer func() { _ = recover() }()
			Find(text, pointers, found, nil)
		}()
	}
}

func TestAParserKeepsNoRoomForALongNumber(t *testing.T) {
	var p Parser
	d, err := p.Parse([]byte(`[1.` + strings.Repeat("7", 1<<20) + `]`))
	if err != nil {
		t.Fatal(err)
	}
	d.Root().WriteCanonical(new(bytes.Buffer))
	if cap(p.document.decimal) < 1<<20 {
		t.Fatal("the number needed no room, which proves nothing")
	}
	if p.Forget(); cap(p.document.decimal) > 16*mostKept {
		t.Errorf("%d bytes are kept", cap(p.document.decimal))
	}
}
