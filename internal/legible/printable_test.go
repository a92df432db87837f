package legible

import (
	"fmt"
	"testing"
)

func TestPrintableTextCannotDeceiveAReader(t *testing.T) {
	t.Run("trap_85_control_characters_are_escaped", func(t *testing.T) {
		for text, want := range map[string]string{
			"": "", "plain-42": "plain-42", "é 😀 日本": "é 😀 日本", "a b": "a b",
			"a\nb": `a\nb`, "a\r\n": `a\r\n`, "\x1b[31mred": `\x1b[31mred`, "a\x00b": `a\x00b`, "\x7f": `\x7f`, "\u0085": `\u0085`,
			"a\u202eb": `a\u202eb`, "a\u200bb": `a\u200bb`, "a\u00a0b": `a\u00a0b`, "\ufeffa": `\ufeffa`, "\U000e0041": `\U000e0041`, "a\u2028b": `a\u2028b`,
			"\xff": `\xff`, "\xed\xa0\x80": `\xed\xa0\x80`, "\ufffd": `\ufffd`, `a\nb`: `a\\nb`, `"q"`: `"q"`,
			" x": `\x20x`, "x ": `x\x20`, " ": `\x20`, "  ": `\x20\x20`, "x  y": "x  y",
		} {
			if got := Printable(text); got != want {
				t.Errorf("%q is %s, want %s", text, got, want)
			}
		}
	})
	t.Run("different texts stay different", func(t *testing.T) {
		alphabet := []string{"a", "\\", "n", "\n", "x", "0", "\x00", "\xff", " ", "\u202e", "u"}
		seen := map[string]string{}
		for _, a := range alphabet {
			for _, b := range alphabet {
				for _, c := range alphabet {
					for _, d := range alphabet {
						s := a + b + c + d
						if other, ok := seen[Printable(s)]; ok && other != s {
							t.Fatalf("%q and %q are both %s", other, s, Printable(s))
						}
						seen[Printable(s)] = s
					}
				}
			}
		}
	})
}

func ExamplePrintable() {
	fmt.Println(Printable("order-7\r\nDELETED by admin\x1b[2J"))
	// Output: order-7\r\nDELETED by admin\x1b[2J
}
