package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLineEscapesOnlyHarmfulCharacters(t *testing.T) {
	for text, want := range map[string]string{
		`C:\semel "a\x1b" café 日本 🙂`: `C:\semel "a\x1b" café 日本 🙂`,
		"a\x1b[2J\nb\tc":             `a\x1b[2J\nb\tc`,
		"\u202eabc\u2066\xff\u009b":  `\u202eabc\u2066\xff\u009b`,
		"\ufffd":                     "\ufffd",
		"":                           "",
		" a ":                        " a ",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q is printed %s, want %s", text, got, want)
		}
	}
}

func TestTextKeepsLinesAndTabs(t *testing.T) {
	var out bytes.Buffer
	n, err := fmt.Fprint(Text(&out), "a\tb\nc\x1b[2J\r\n")
	if got := out.String(); err != nil || n != 11 || got != "a\tb\nc\\x1b[2J\\r\n" {
		t.Errorf("%d, %v, %q", n, err, got)
	}
}

func TestJSONMeansTheSame(t *testing.T) {
	text := "a\x1b\x7f\u009b\u202e\U000e0001 日本 🙂 \ufffd \\ \" \n"
	document, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := JSON(&out).Write(document); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
		t.Errorf("%v: %q, from %s", err, back, out.String())
	}
	if strings.ContainsAny(out.String(), "\x7f\u009b\u202e\U000e0001") {
		t.Errorf("not escaped: %q", out.String())
	}
}

func TestLinesOfJoinedErrors(t *testing.T) {
	first, second := errors.New("disk full\nsemel: all is well"), errors.New("no route")
	joined := fmt.Errorf("store shop: %w", errors.Join(first, nil, fmt.Errorf("host b: %w", second)))
	for _, c := range []struct {
		err  error
		want []string
	}{
		{first, []string{`disk full\nsemel: all is well`}},
		{joined, []string{`store shop: disk full\nsemel: all is well`, `store shop: host b: no route`}},
		{errors.Join(joined, second), []string{`store shop: disk full\nsemel: all is well`, `store shop: host b: no route`, "no route"}},
		{fmt.Errorf("%w, and then %w", first, second), []string{`disk full\nsemel: all is well, and then no route`}},
		{fmt.Errorf("%w; mend it", first), []string{`disk full\nsemel: all is well; mend it`}},
	} {
		if got := Lines(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%q is printed as %q, want %q", c.err, got, c.want)
		}
	}
	if got := Lines(errors.New(strings.Repeat("é", 3000))); len(got) != 1 || !strings.HasSuffix(got[0], "é… (1000 characters more)") {
		t.Errorf("a long error ends with %q", got[0][len(got[0])-60:])
	}
}
