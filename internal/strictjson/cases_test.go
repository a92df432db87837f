package strictjson

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func newComparison() *comparison { return &comparison{refused: map[string]int{}} }

func (c *comparison) mustBeSame(t *testing.T, text string) {
	t.Helper()
	if err := c.check([]byte(text)); err != nil {
		t.Error(err)
	}
}

// object returns a JSON object with the given names, which are written without changes.
func object(names []string) string {
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, `,"%s":%d`, name, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// shuffles compares the parsers for objects with the given names in many orders.
func (c *comparison) shuffles(t *testing.T, names ...string) {
	t.Helper()
	r := rand.New(rand.NewPCG(17, 18))
	for range 300 {
		r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		c.mustBeSame(t, object(names))
		c.mustBeSame(t, object(names[:1+r.IntN(len(names))]))
	}
}

// A string can begin and end at any position in a word of eight bytes, and a special byte can be at any position in the
// word.
func TestEveryByteIsSeenAtEveryPlace(t *testing.T) {
	c := newComparison()
	for length := range 18 {
		for place := range length {
			for b := range 256 {
				text := []byte(`"` + strings.Repeat("x", length) + `"`)
				text[1+place] = byte(b)
				if err := c.check(text); err != nil {
					t.Fatal(err)
				}
			}
			for _, part := range []string{"é", "日", "😀", `\"`, `\\`, `\u00e9`, `\ud83d\ude00`} {
				inner := strings.Repeat("x", place) + part + strings.Repeat("y", length-place)
				c.mustBeSame(t, `"`+inner)
				c.mustBeSame(t, `{"`+inner+`":["`+inner+`"],"z":"`+inner+`\\"}`)
				c.mustBeSame(t, `{"`+inner+`":["{`+inner+`}"],"`+inner+`":0}`)
			}
		}
	}
}

func TestNamesAreComparedWhole(t *testing.T) {
	c := newComparison()
	t.Run("members that share their first eight bytes", func(t *testing.T) {
		c.shuffles(t, "abcdefgh", "abcdefghi", "abcdefghh", "abcdefgh-long-name-0", "abcdefgh-long-name-1", "abcdefgg", "abcdefgi")
	})
	t.Run("names with NUL after a common prefix", func(t *testing.T) {
		c.shuffles(t, "abc", `abc\u0000`, `abc\u0000\u0000`, `abc\u0000d`, `abc\u0001`, "abcd", "ab")
	})
	t.Run("names shorter than eight bytes, and the same filled up with NULs", func(t *testing.T) {
		filled := []string{"", "a", "abcdefg", `abcdefg\u0000`, `abcdefg\u0000\u0000`, "abcdefgh"}
		for n := 1; n < 10; n++ {
			filled = append(filled, strings.Repeat(`\u0000`, n), "a"+strings.Repeat(`\u0000`, n))
		}
		c.shuffles(t, filled...)
	})
	t.Run("many names that begin with the same", func(t *testing.T) {
		many := []string{"order-", `order-\u0000`, `order-\u0000\u0000`}
		for i := range 2 * fewNames {
			many = append(many, fmt.Sprintf("order-%d", i), fmt.Sprintf("order-1234567890-%d", i))
		}
		c.shuffles(t, many...)
	})
	t.Run("names that are not ASCII come behind those that are", func(t *testing.T) {
		c.shuffles(t, "é", "e\u0301", "z", "日本", `\u65e5`, "😀", `\ud83d\ude01`, "\u007f")
	})
	if c.refused["a repeated member name"] > 0 {
		t.Error("a name was taken for another")
	}
	t.Run("names that differ only in escapes are one name", func(t *testing.T) {
		for _, names := range [][]string{{"a", `\u0061`}, {"/", `\/`}, {"é", `\u00e9`, "x"}, {`\n`, `\u000a`}, {"abcdefghi", `abcdefgh\u0069`}, {`\ud83d\ude00`, "b", "😀"}} {
			before := c.refused["a repeated member name"]
			c.mustBeSame(t, object(names))
			if c.refused["a repeated member name"] == before {
				t.Errorf("%q was accepted", names)
			}
		}
		c.shuffles(t, "one", "two", "three", `thre\u0065`, `\u0074wo`)
	})
}

func TestTheOrderOfMembersMakesNoDifference(t *testing.T) {
	c := newComparison()
	for _, n := range []int{2, 7, 8, fewNames, fewNames + 1, 100, mostOrdered, mostOrdered + 1, 1000} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("%07d", i))
		}
		reversed := slices.Clone(names)
		slices.Reverse(reversed)
		out := slices.Clone(names)
		out[0], out[n-1] = out[n-1], out[0]
		twice := append(slices.Clone(out), out[n/2])
		for round := range 3 { // an order is new at first, and remembered from the second round on
			t.Run(fmt.Sprintf("%d members, %d", n, round), func(t *testing.T) {
				c.mustBeSame(t, object(names))
				c.mustBeSame(t, object(reversed))
				c.mustBeSame(t, object(out))
				c.mustBeSame(t, object(twice))
			})
		}
	}
}

// The names produce the same key as a remembered order, but they need another order.
func TestAKnownOrderIsVerified(t *testing.T) {
	c := newComparison()
	known := []string{"m", "z", "b", "k", "y", "c", "a"}
	for _, other := range [][]string{
		known,
		{"m", "b", "z", "k", "y", "c", "a"},
		{"m", "z", "b", "k", "c", "y", "a"},
		{"m", "z", "z", "k", "y", "c", "a"},
		{"m", "z", "b", "k", "b", "c", "a"},
		{"m", "z", "a", "k", "y", "c", "a"},
		{"m", "z", "b", "k", "y", "m", "a"},
	} {
		c.mustBeSame(t, object(known))
		c.mustBeSame(t, object(other))
		c.mustBeSame(t, object(known))
	}
	if got := c.refused["a repeated member name"]; got != 4 {
		t.Errorf("%d texts have a repeated name, want 4", got)
	}
	r := rand.New(rand.NewPCG(19, 20))
	for range 5000 { // only few letters, so that the keys of different orders are often equal
		names := make([]string, 2+r.IntN(9))
		for i := range names {
			names[i] = strings.Repeat(string("abcdefghijklm"[r.IntN(13)]), 1+8*r.IntN(2))
		}
		c.mustBeSame(t, object(names))
	}
}

func TestDeepTextsMatchTheReference(t *testing.T) {
	c := newComparison()
	for _, depth := range []int{1, 999, 1000, 1001, 10_000} {
		for _, part := range [][3]string{{"[", "", "]"}, {`{"a":`, "1", "}"}, {`[{"a":`, "[]", "}]"}} {
			deep := strings.Repeat(part[0], depth)
			c.mustBeSame(t, deep)
			c.mustBeSame(t, deep+part[1]+strings.Repeat(part[2], depth))
			c.mustBeSame(t, deep+part[1]+strings.Repeat(part[2], depth-1))
		}
	}
	if c.refused["nested deeper than 1000"] == 0 {
		t.Error("no text was refused for its depth")
	}
}

func TestA16MBStringIsRead(t *testing.T) {
	const length = 16 << 20
	for name, part := range map[string]string{"ASCII": "x", "not ASCII": "日", "escapes": `\u00e9`, "quotes": `\"`} {
		t.Run(name, func(t *testing.T) {
			text := []byte(`{"a":"` + strings.Repeat(part, length/len(part)) + `","b":[1]}`)
			d, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			want, fault := refParse(text)
			if fault != nil {
				t.Fatal(fault)
			}
			var form bytes.Buffer
			d.Root().WriteCanonical(&form)
			if !bytes.Equal(form.Bytes(), want.canonical(nil, text)) {
				t.Error("the canonical form differs")
			}
			checkFound(t, d, []Pointer{mustPointer(t, "/b/0"), mustPointer(t, "/a")}, nil)
		})
	}
}

// objectOf returns a JSON object with the given names. All values are equal, so that they do not show the order of the
// names.
func objectOf(names []string) string { return `{"` + strings.Join(names, `":0,"`) + `":0}` }

// If sorting took quadratic time, the test would exceed its time limit.
func TestAMillionMembersAreSorted(t *testing.T) {
	const n = 1_000_000
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("a-common-prefix-%07d", i)
	}
	sorted := canonicalSum(t, []byte(objectOf(names)))
	slices.Reverse(names)
	organ := append([]string{}, names[:n/2]...) // descending, then ascending
	for i := n - 1; i >= n/2; i-- {
		organ = append(organ, names[i])
	}
	shuffled := slices.Clone(names)
	rand.New(rand.NewPCG(21, 22)).Shuffle(n, func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	for order, names := range map[string][]string{"reversed": names, "down and up": organ, "shuffled": shuffled} {
		t.Run(order, func(t *testing.T) {
			text := objectOf(names)
			if canonicalSum(t, []byte(text)) != sorted {
				t.Error("the order of members made a difference")
			}
			twice := strings.TrimSuffix(text, "}") + `,"` + names[n/3] + `":0}`
			if order == "shuffled" {
				return // the slowest order runs only once
			}
			if err, ok := Check([]byte(twice)).(*Error); !ok || err.Offset != len(text) || err.Problem != "a repeated member name" {
				t.Errorf("a name that comes twice: %v, the second is at %d", err, len(text))
			}
		})
	}
}

func TestATypicalTextNeedsNoAllocation(t *testing.T) {
	for _, c := range append(bodies(), sample{"numbers", []byte(`[1.50,-0,1E+2,-1.5e-400000,0.0000001,12345678901234567890123]`), []string{"/0", "/5"}}) {
		var parser Parser
		var pointers []Pointer
		for _, p := range c.pointers {
			pointers = append(pointers, mustPointer(t, p))
		}
		h, found, scratch := sha256.New(), make([]Found, len(pointers)), make([]byte, 0, 1024)
		allocations := testing.AllocsPerRun(100, func() {
			d, err := parser.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			d.Root().WriteCanonical(h)
			for _, p := range pointers {
				if v, ok := d.Lookup(p); !ok || !v.Proof().Holds(v.Raw()) {
					t.Fatal(p)
				}
			}
			Find(c.text, pointers, found, scratch)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", c.name, allocations)
		}
	}
}
