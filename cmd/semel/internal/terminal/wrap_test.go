package terminal

import "testing"

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three", Unlimited, "one two three"},
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two\n  three"},
		{"one two three", 5, "one\n  two\n  three"},
		{"incomprehensible two", 5, "incomprehensible\n  two"},
		{"", 5, ""},
	} {
		if got := Wrap(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}
