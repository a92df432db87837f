package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// writer writes values as JSON, and chooses randomly how to write each value.
type writer struct {
	*rand.Rand
	bytes.Buffer
}

func (w *writer) gap() {
	for w.IntN(4) == 0 {
		w.WriteByte(" \t\r\n"[w.IntN(4)])
	}
}

// spell writes v with random space, member order, escapes and number formats.
func (w *writer) spell(v any) {
	w.gap()
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		w.list('{', '}', len(names), func(i int) {
			w.gap()
			w.text(names[i])
			w.gap()
			w.WriteByte(':')
			w.spell(v[names[i]])
		})
	case []any:
		w.list('[', ']', len(v), func(i int) { w.spell(v[i]) })
	case string:
		w.text(v)
	case int64:
		w.number(v)
	default:
		fmt.Fprint(w, map[any]string{nil: "null", true: "true", false: "false"}[v])
	}
	w.gap()
}

func (w *writer) list(open, closing byte, n int, element func(int)) {
	w.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.WriteByte(',')
		}
		element(i)
	}
	w.WriteByte(closing)
}

func (w *writer) text(s string) {
	w.WriteByte('"')
	for _, r := range s {
		switch {
		case r < ' ' || r == '"' || r == '\\' || r < 0x10000 && w.IntN(3) == 0:
			fmt.Fprintf(w, `\u%04x`, r)
		default:
			w.WriteRune(r)
		}
	}
	w.WriteByte('"')
}

func (w *writer) number(n int64) {
	switch w.IntN(4) {
	case 0:
		fmt.Fprintf(w, "%d", n)
	case 1:
		fmt.Fprintf(w, "%d.%s", n, strings.Repeat("0", 1+w.IntN(30)))
	case 2:
		zeros := w.IntN(30)
		fmt.Fprintf(w, "%d%sE-%d", n, strings.Repeat("0", zeros), zeros)
	case 3:
		fmt.Fprintf(w, "%de+00", n)
	}
}

func value(r *rand.Rand, depth int) any {
	kind := r.IntN(7)
	if depth == 0 {
		kind = r.IntN(5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.Int64N(2_000_000) - 1_000_000
	case 3:
		return r.Int64() - r.Int64()
	case 4:
		return word(r)
	case 5:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = value(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(20) {
		object[word(r)] = value(r, depth-1)
	}
	return object
}

func word(r *rand.Rand) string {
	runes := []rune("aAé\u0301\x00\n\"\\/😀 日\u007f")
	out := make([]rune, r.IntN(6))
	for i := range out {
		out[i] = runes[r.IntN(len(runes))]
	}
	return string(out)
}

func spelled(r *rand.Rand, v any) []byte {
	w := writer{Rand: r}
	w.spell(v)
	return w.Bytes()
}

func TestEverySpellingOfAValueHasOneCanonicalForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 2000 {
		v := value(r, 4)
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		sum := canonicalSum(t, plain)
		for range 3 {
			if text := spelled(r, v); canonicalSum(t, text) != sum {
				t.Fatalf("%s and %s have two forms", plain, text)
			}
		}
		if other, ok := seen[sum]; ok && other != string(plain) {
			t.Fatalf("%s and %s have one form", plain, other)
		}
		seen[sum] = string(plain)
	}
}

func TestADecimalIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	decimals := map[string]string{} // by the decimal form
	for range 20_000 {
		number := fmt.Sprintf("%d.%0*de%d", r.Int64N(2000)-1000, 1+r.IntN(25), r.Int64N(1000), r.IntN(60)-30)
		want, _ := new(big.Rat).SetString(number)
		text := string(AppendDecimal(nil, []byte(number)))
		got, ok := new(big.Rat).SetString(text)
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("%s became %s", number, text)
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s became %s, which is no JSON", number, text)
		}
		if again := string(AppendDecimal(nil, []byte(text))); again != text {
			t.Fatalf("%s, then %s", text, again)
		}
		if other, ok := decimals[want.RatString()]; ok && other != text {
			t.Fatalf("%s and %s are one number", other, text)
		}
		decimals[want.RatString()] = text
	}
}

func TestAReusedParserMatchesANewOne(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var parser Parser
	for i := range 1000 {
		text := spelled(r, value(r, 1+i%5))
		if i%7 == 0 {
			text = text[:r.IntN(len(text)+1)]
		}
		fresh, wantErr := Parse(text)
		d, err := parser.Parse(text)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q: %v, fresh %v", text, err, wantErr)
		}
		if err != nil {
			continue
		}
		var got, want bytes.Buffer
		d.Root().WriteCanonical(&got)
		fresh.Root().WriteCanonical(&want)
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("%q: %q, fresh %q", text, got.Bytes(), want.Bytes())
		}
	}
}

func TestLongTextsAreWrittenWhole(t *testing.T) {
	for _, n := range []int{flushAt - 1, flushAt, flushAt + 1, 3 * flushAt} {
		long := strings.Repeat("x", n)
		var got bytes.Buffer
		d, err := Parse([]byte(`["` + long + `","\u0079` + long + `",12]`))
		if err != nil {
			t.Fatal(err)
		}
		d.Root().WriteCanonical(&got)
		if !strings.Contains(got.String(), long+"s") || !strings.Contains(got.String(), "y"+long+"d\x0212e") {
			t.Errorf("%d bytes: %q", n, got.Bytes())
		}
	}
}
