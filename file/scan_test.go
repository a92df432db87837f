package file

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// cutAll passes text to the scanner in pieces and returns the lines.
func cutAll(s *scanner, text string, piece func() int) []line {
	var out []line
	collect := func(final bool) {
		for l, ok := s.nextLine(final); ok; l, ok = s.nextLine(final) {
			l.text = bytes.Clone(l.text)
			out = append(out, l)
		}
	}
	for rest := text; rest != ""; {
		n := copy(s.freeSpace(), rest[:min(piece(), len(rest))])
		s.addFilled(n)
		rest = rest[n:]
		collect(false)
	}
	collect(true)
	return out
}

// reference splits text into lines in the simplest way. Tests compare the result of reference with the lines of the
// scanner.
func reference(text string, limit int) []line {
	var out []line
	for at := 0; at < len(text); {
		raw, _, ended := strings.Cut(text[at:], "\n")
		l := line{start: int64(at), end: int64(at + len(raw))}
		if at == 0 {
			raw = strings.TrimPrefix(raw, "\xef\xbb\xbf")
		}
		if ended {
			l.end++
			raw = strings.TrimSuffix(raw, "\r")
		}
		at = int(l.end)
		l.length = int64(len(raw))
		l.text = []byte(raw)
		if len(raw) > limit {
			l.text = l.text[:kept]
		}
		if strings.Trim(raw, " \t\r") != "" {
			out = append(out, l)
		}
	}
	return out
}

func TestLinesAreCutTheSameHoweverTheyArrive(t *testing.T) {
	const limit = kept + 100
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		text := randomLines(random, limit)
		got := cutAll(newScanner(limit, 0), text, func() int { return 1 + random.IntN(1+random.IntN(chunk)) })
		want := reference(text, limit)
		if diff := firstDifference(got, want); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// randomLines returns random lines, with different line ends, byte-order marks, blank lines and lengths around
// the limit.
func randomLines(random *rand.Rand, limit int) string {
	var text strings.Builder
	if random.IntN(3) == 0 {
		text.Write(mark)
	}
	for range random.IntN(30) {
		switch random.IntN(8) {
		case 0:
			text.WriteString(strings.Repeat("x", limit-4+random.IntN(9)))
		case 1:
			text.WriteString(strings.Repeat("y", random.IntN(4*limit)))
		case 2:
			text.WriteString(strings.Repeat(" \t", random.IntN(3)))
		default:
			fmt.Fprintf(&text, "line %d\r.", random.Uint32())
		}
		text.WriteString([]string{"\n", "\r\n", "\n", "\n\n", ""}[random.IntN(5)])
	}
	return text.String()
}

func firstDifference(got, want []line) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Sprintf("%d lines instead of %d", len(got), len(want))
		}
		g, w := got[i], want[i]
		if g.start != w.start || g.end != w.end || g.length != w.length || !bytes.Equal(g.text, w.text) {
			return fmt.Sprintf("line %d is %d-%d of %d bytes, %.20q; want %d-%d of %d bytes, %.20q",
				i, g.start, g.end, g.length, g.text, w.start, w.end, w.length, w.text)
		}
	}
	return ""
}

func TestALineAroundTheLimitIsCutTheSameWhenItsEndComesLate(t *testing.T) {
	const limit = kept
	for length := limit - 2; length <= limit+6; length++ {
		for _, end := range []string{"\n", "\r\n", "", "\r", "\r.\n"} {
			text := strings.Repeat("x", length) + end
			first := length
			got := cutAll(newScanner(limit, 0), text, func() int { n := first; first = 1; return n })
			if diff := firstDifference(got, reference(text, limit)); diff != "" {
				t.Errorf("%d bytes and %q: %s", length, end, diff)
			}
		}
	}
}

func TestALineThatDoesNotEndUsesNoMoreMemoryThanItsLimit(t *testing.T) {
	s := newScanner(1<<20, 0)
	for range 1000 {
		s.addFilled(len(s.freeSpace()))
		if _, ok := s.nextLine(false); ok {
			t.Fatal("there is no line end yet")
		}
		if len(s.buffer) > 1<<20+2*chunk {
			t.Fatalf("the buffer has %d bytes", len(s.buffer))
		}
	}
	l, ok := s.nextLine(true)
	if !ok || len(l.text) != kept || l.length != s.readOffset() {
		t.Errorf("kept %d of %d bytes, %d were read", len(l.text), l.length, s.readOffset())
	}
}
