package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

var key = []byte("a key of at least thirty-two bytes")

// newChain returns an audit chain of n records, and the description of its last line.
func newChain(key []byte, n int) ([]admin.Seal, admin.SealHead) {
	var end admin.SealHead
	var all []admin.Seal
	for i := range n {
		act := store.Act{Number: int64(i + 10), Row: int64(i), Verb: "discard", Who: "ana", Why: fmt.Sprintf("reason %d", i), Result: "done", At: time.UnixMicro(int64(i) * 1e6)}
		s := Next(key, end, act, time.UnixMicro(int64(i)*1e6+5))
		end = HeadOf(key, s)
		all = append(all, s)
	}
	return all, end
}

// verifyChain verifies an audit chain and returns the findings as texts.
func verifyChain(key []byte, lines []admin.Seal, end admin.SealHead) []string {
	v := NewVerifier(key)
	v.ExpectEnd(end, "the end")
	for _, s := range lines {
		v.Add(Line{Seal: s})
	}
	var found []string
	for _, f := range v.End().Findings {
		found = append(found, f.String())
	}
	return found
}

func TestALineHasThisHash(t *testing.T) {
	s := admin.Seal{Sequence: 2, At: time.UnixMicro(1_700_000_000_000_001), Previous: admin.SealHash{31: 1},
		Act: store.Act{Number: 7, Row: 3, Verb: "discard", Who: "ana", Why: "paid by hand", Result: "done", At: time.UnixMicro(1_600_000_000_000_000)}}
	if got, want := fmt.Sprintf("%x", Hash(nil, s)), goldenPlain; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
	s.Keyed = true
	if got, want := fmt.Sprintf("%x", Hash(key, s)), goldenKeyed; got != want {
		t.Errorf("under a key the hash is %s, want %s", got, want)
	}
}

func TestAnIntactChainHasNoFindings(t *testing.T) {
	for _, k := range [][]byte{nil, key} {
		for _, n := range []int{0, 1, 2, 100} {
			lines, end := newChain(k, n)
			if found := verifyChain(k, lines, end); len(found) > 0 {
				t.Errorf("in %d lines: %q", n, found)
			}
		}
	}
}

// renumber numbers the lines of an audit chain from 1, in their current order.
func renumber(lines []admin.Seal) []admin.Seal {
	for i := range lines {
		lines[i].Sequence = int64(i + 1)
	}
	return lines
}

func TestEachForgeryIsDetectedAndNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		forge func(lines []admin.Seal) []admin.Seal
		want  []string // prefixes of the findings
	}{
		{"changed", func(l []admin.Seal) []admin.Seal { l[4].Act.Why = "other"; return l }, []string{"line 5, change 14: changed"}},
		{"the first is changed", func(l []admin.Seal) []admin.Seal { l[0].Act.Who = "bo"; return l }, []string{"line 1, change 10: changed"}},
		{"the last is changed", func(l []admin.Seal) []admin.Seal { l[9].Act.Who = "bo"; return l }, []string{"line 10, change 19: changed"}},
		{"its hash is changed", func(l []admin.Seal) []admin.Seal { l[4].Hash[0]++; return l }, []string{"line 5, change 14: changed"}},
		{"its link is changed", func(l []admin.Seal) []admin.Seal { l[4].Previous[0]++; return l }, []string{"line 5, change 14: changed: the hash of the line before"}},
		{"removed", func(l []admin.Seal) []admin.Seal { return slices.Delete(l, 4, 5) }, []string{"line 5: removed"}},
		{"several are removed", func(l []admin.Seal) []admin.Seal { return slices.Delete(l, 4, 7) }, []string{"lines 5 to 7: removed"}},
		{"the first is removed", func(l []admin.Seal) []admin.Seal { return l[1:] }, []string{"line 1: removed"}},
		{"removed, and the others are renumbered", func(l []admin.Seal) []admin.Seal { return renumber(slices.Delete(l, 4, 5)) },
			[]string{"lines 5 to 9: reordered: they were sealed as lines 6 to 10", "line 5: removed"}},
		{"reordered", func(l []admin.Seal) []admin.Seal { l[3], l[4] = l[4], l[3]; return l }, []string{"line 4, change 13: reordered"}},
		{"reordered and renumbered", func(l []admin.Seal) []admin.Seal { l[3], l[4] = l[4], l[3]; return renumber(l) },
			[]string{"line 4, change 13: reordered", "line 4: reordered: it was sealed as line 5"}},
		{"moved far", func(l []admin.Seal) []admin.Seal { return append(slices.Delete(slices.Clone(l), 1, 2), l[1]) }, []string{"line 2, change 11: reordered"}},
		{"inserted", func(l []admin.Seal) []admin.Seal {
			return slices.Insert(l, 5, admin.Seal{Sequence: 6, Act: store.Act{Number: 99, Verb: "discard"}})
		}, []string{"line 6, change 99: inserted"}},
		{"inserted, and the others are renumbered", func(l []admin.Seal) []admin.Seal {
			return renumber(slices.Insert(l, 5, admin.Seal{Act: store.Act{Number: 99, Verb: "discard"}}))
		}, []string{"line 6, change 99: inserted", "lines 7 to 11: reordered: they were sealed as lines 6 to 10"}},
		{"a copy is inserted", func(l []admin.Seal) []admin.Seal { return slices.Insert(l, 5, l[4]) }, []string{"line 5, change 14: inserted"}},
		{"an old copy is inserted", func(l []admin.Seal) []admin.Seal { return slices.Insert(l, 8, l[4]) }, []string{"line 5, change 14: inserted"}},
		{"appended", func(l []admin.Seal) []admin.Seal {
			return append(l, admin.Seal{Sequence: 11, Act: store.Act{Number: 99}})
		}, []string{"line 11, change 99: inserted"}},
		{"cut off", func(l []admin.Seal) []admin.Seal { return l[:7] }, []string{"lines 8 to 10: cut off"}},
		{"all are cut off", func(l []admin.Seal) []admin.Seal { return nil }, []string{"lines 1 to 10: cut off"}},
	} {
		for _, k := range [][]byte{nil, key} {
			t.Run(fmt.Sprintf("%s_%d", c.name, len(k)), func(t *testing.T) {
				lines, end := newChain(k, 10)
				found := verifyChain(k, c.forge(lines), end)
				if len(found) < len(c.want) {
					t.Fatalf("found %q, want %q", found, c.want)
				}
				for i, want := range c.want {
					if !strings.HasPrefix(found[i], want) {
						t.Errorf("finding %d is %q, want %q", i, found[i], want)
					}
				}
				if extra := found[len(c.want):]; len(extra) > 0 && !strings.Contains(c.name, "renumbered") {
					t.Errorf("further findings: %q", extra)
				}
			})
		}
	}
}

// A forger who can write the table can compute hashes without a key, as Semel does.
func TestARecomputedChainIsDetected(t *testing.T) {
	anew := func(key []byte, lines []admin.Seal, from int) admin.SealHead {
		for i := from; i < len(lines); i++ {
			if i > 0 {
				lines[i].Previous = lines[i-1].Hash
			}
			lines[i].Hash = Hash(key, lines[i])
		}
		return admin.SealHead{Sequence: int64(len(lines)), Keyed: lines[0].Keyed, Hash: lines[len(lines)-1].Hash}
	}
	t.Run("with_a_kept_head", func(t *testing.T) {
		lines, kept := newChain(nil, 10)
		lines[4].Act.Why = "other"
		end := anew(nil, lines, 4)
		if found := verifyChain(nil, lines, end); len(found) > 0 {
			t.Errorf("without the head: %q", found)
		}
		if found := verifyChain(nil, lines, kept); len(found) != 1 || !strings.HasPrefix(found[0], "line 10: changed: its hash is not that of the end") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("a_single_line_by_the_next_line", func(t *testing.T) {
		lines, end := newChain(nil, 10)
		lines[4].Act.Why = "other"
		lines[4].Hash = Hash(nil, lines[4])
		if found := verifyChain(nil, lines, end); len(found) != 1 || !strings.HasPrefix(found[0], "line 5, change 14: changed: line 6 follows another one") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("an_inserted_line_by_the_next_line", func(t *testing.T) {
		lines, end := newChain(nil, 10)
		own := Next(nil, HeadOf(nil, lines[4]), store.Act{Number: 99, At: time.UnixMicro(1)}, time.UnixMicro(1))
		if found := verifyChain(nil, slices.Insert(lines, 5, own), end); len(found) != 1 || !strings.HasPrefix(found[0], "line 6, change 99: inserted") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("with_the_key", func(t *testing.T) {
		lines, _ := newChain(key, 10)
		lines[4].Act.Why = "other"
		end := anew([]byte("what the forger takes for the key"), lines, 4)
		if found := verifyChain(key, lines, end); len(found) == 0 || !strings.HasPrefix(found[0], "line 5, change 14: changed") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("a_chain_without_a_key_when_verified_with_one", func(t *testing.T) {
		lines, _ := newChain(nil, 10)
		if found := verifyChain(key, lines, HeadOf(nil, lines[9])); len(found) != 1 || !strings.HasPrefix(found[0], "line 10: changed: no line up to here is under the key") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("a_tail_without_a_key", func(t *testing.T) {
		lines, end := newChain(key, 10)
		own := Next(nil, end, store.Act{Number: 99, At: time.UnixMicro(1)}, time.UnixMicro(1))
		if found := verifyChain(key, append(lines, own), HeadOf(nil, own)); len(found) == 0 || !strings.HasPrefix(found[0], "line 11") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("a_truncated_chain_by_the_proof_of_its_end", func(t *testing.T) {
		lines, end := newChain(key, 10)
		cut := admin.SealHead{Sequence: 7, Keyed: true, Hash: lines[6].Hash, Proof: end.Proof}
		if found := verifyChain(key, lines[:7], cut); len(found) != 1 || !strings.Contains(found[0], "was not written with the key") {
			t.Errorf("found %q", found)
		}
	})
}

func TestAKeyAddedLaterProtectsEarlierLines(t *testing.T) {
	lines, end := newChain(nil, 5)
	for i := range 5 {
		s := Next(key, end, store.Act{Number: int64(100 + i), At: time.UnixMicro(1)}, time.UnixMicro(1))
		end = HeadOf(key, s)
		lines = append(lines, s)
	}
	// A description of the last line that was saved before the key was introduced proves that the lines without a key
	// are genuine.
	kept := func() []string {
		v := NewVerifier(key)
		v.Expect(PointOf(HeadOf(key, lines[5])), "the head that was kept")
		v.ExpectEnd(end, "the end")
		for _, s := range lines {
			v.Add(Line{Seal: s})
		}
		var found []string
		for _, f := range v.End().Findings {
			found = append(found, f.String())
		}
		return found
	}
	if found := kept(); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if found := verifyChain(key, lines, end); len(found) != 1 || !strings.HasPrefix(found[0], "lines 1 to 5: under no key") {
		t.Errorf("without a kept head: %q", found)
	}
	lines[2].Act.Who = "bo"
	if found := kept(); len(found) != 1 || !strings.HasPrefix(found[0], "line 3") {
		t.Errorf("found %q", found)
	}
	if err := MaySeal(&admin.Sealing{}, end); err == nil {
		t.Error("a chain with a key may be extended without it")
	}
	end.Sequence--
	if err := MaySeal(&admin.Sealing{Key: key, Continue: true}, end); err == nil || !strings.Contains(err.Error(), "line 9, was not written with this process's audit.key") {
		t.Errorf("after lines were cut off: %v", err)
	}
}

func TestActsAreComparedWithTheirLines(t *testing.T) {
	lines, end := newChain(nil, 4)
	v := NewVerifier(nil)
	v.ExpectEnd(end, "the end")
	for i, s := range lines {
		now := s.Act
		l := Line{Seal: s, Compared: true, Now: &now}
		switch i {
		case 1:
			now.Why = "other"
		case 2:
			l.Now = nil
		case 3:
			l.Act.Who = "bo"
		}
		v.Add(l)
	}
	want := []string{
		`line 2, change 11: changed: in the table of changes: why was sealed as "reason 1" and is "other"`,
		`line 3, change 12: removed: the table of changes no longer has it; it was "discard" by "ana" at 1970-01-01T00:00:02Z`,
		`line 4, change 13: changed: the line: who was sealed as "ana" and is "bo"; the table of changes still has what was sealed`,
	}
	for i, f := range v.End().Findings {
		if f.String() != want[i] {
			t.Errorf("finding %d is %s, want %s", i, f, want[i])
		}
	}
}

func TestAnExportedChainIsReadBackUnchanged(t *testing.T) {
	lines, end := newChain(key, 3)
	lines[1].Act.Why = "\xff\x00"
	lines[2].Act.Why = "base64:"
	var b bytes.Buffer
	for _, s := range lines {
		if err := WriteLine(&b, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteEnd(&b, end); err != nil {
		t.Fatal(err)
	}
	var got []admin.Seal
	read, err := Read(bytes.NewReader(b.Bytes()), func(s admin.Seal) { got = append(got, s) })
	if err != nil || !slices.Equal(got, lines) || read == nil || *read != end {
		t.Errorf("read %+v and %+v: %v", got, read, err)
	}
	for _, c := range []struct{ text, want string }{
		{b.String() + b.String(), "line 5 of the file"},
		{"{}\n", "it has no change"},
		{"x\n", "line 1 of the file"},
		{strings.Replace(b.String(), `"verb"`, `"verbs"`, 1), "line 1 of the file"},
	} {
		if _, err := Read(strings.NewReader(c.text), func(admin.Seal) {}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error about %q: %v", c.want, err)
		}
	}
}

func TestParsePointIsTheInverseOfString(t *testing.T) {
	p := Point{12, admin.SealHash{1, 2, 3}}
	if got, err := ParsePoint(p.String()); got != p || err != nil {
		t.Errorf("%v: %v", got, err)
	}
	for _, s := range []string{"", "12", "12:", "x:00", "-1:" + strings.Repeat("0", 64), "1:" + strings.Repeat("0", 63)} {
		if _, err := ParsePoint(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
