package terminal

import "testing"

func TestPartsAreShownWholeOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{Unlimited, "billing  failed 1  applied 10000"},
		{80, "billing  failed 1  applied 10000"},
		{32, "billing  failed 1  applied 10000"},
		{31, "billing  failed 1  …"},
		{20, "billing  failed 1  …"},
		{19, "billing  …"},
		{9, "…"},
		{1, "…"},
	} {
		got := Parts(c.columns, "billing", "failed 1", "applied 10000")
		if got != c.want || c.columns != Unlimited && Columns(got) > c.columns {
			t.Errorf("in %d columns: %q, want %q", c.columns, got, c.want)
		}
	}
}

func TestAShorterPartIsShownAfterOneThatDoesNotFit(t *testing.T) {
	if got, want := Parts(30, "billing", "behind 12, oldest 7s, 3 paused", "applied 10"), "billing  applied 10  …"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCutCountsColumnsNotCharacters(t *testing.T) {
	for text, want := range map[string]string{"日本語のテキスト": "日本語…", "abcdefgh": "abcdefgh", "abcdefghi": "abcdefg…"} {
		if got := Cut(text, 8); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
