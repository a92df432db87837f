package mutation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const original = `package p

func (s *set) each(_ int, names ...string) {
	s.count++
}

func sum(int) (total int) {
	total = 1
	return total
}

func first[T any](of []T) T { return of[0] }

func (s *set) judge(a, b int) bool {
	switch {
	case a < b && s.known:
		s.count = a
		return true
	case s.off:
		s.leave()
	}
	if s.full() {
		return false
	}
	for a := range s.all {
		if a > s.most {
			continue
		}
		s.add(a + b)
	}
	return s.known
}
`

const planted = `package p

func (s *set) each(semel0_0 int, names ...string) { switch semelMutant { case 1: s.eachMutant1(semel0_0, names...); return; };
	s.count++
}

func sum(semel0 int) (total int) { switch semelMutant { case 2: return sumMutant2(semel0); case 3: return sumMutant3(semel0); };
	total = 1
	return total
}

func first[T any](of []T) T { switch semelMutant { case 4: return firstMutant4[T](of); }; return of[0] }
`

const copies = `
//line mutant1:1
func (s *set) eachMutant1(_ int, names ...string) {
	
}

//line mutant2:1
func sumMutant2(int) (total int) { return 2 }

//line mutant3:1
func sumMutant3(int) (total int) { return 3;
	total = 1
	return total
}

//line mutant4:1
func firstMutant4[T any](of []T) T { return of[1] }
`

// writeOriginal writes the original to a new folder and returns the folder.
func writeOriginal(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "p.go"), []byte(original), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestAFileHasEveryChangeAndNoneUntilItIsSwitchedOn(t *testing.T) {
	folder := writeOriginal(t)
	var all []numbered
	for _, of := range []struct {
		function string
		edit     Edit
	}{{"(*set).each", Delete("count")}, {"sum", Return("2")}, {"sum", Prepend("return 3;")}, {"first", Return("of[1]")}} {
		c, err := Find(folder, "*.go", of.function, of.edit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, numbered{c, len(all) + 1})
	}
	text := schemaOf(all[0].Fn.file, all)
	if !strings.HasPrefix(text, planted) || !strings.HasSuffix(text, copies) {
		t.Errorf("it is\n%s\nwant\n%s…%s", text, planted, copies)
	}
}

func TestAnEditFindsItsPlaceByNames(t *testing.T) {
	folder := writeOriginal(t)
	for want, edit := range map[string]Edit{
		"case (a < b && s.known) && false:": Never("known"),
		"case (s.off) || true:":             Always("off"),
		"case s.known:":                     Drop("a"),
		"case a < b:":                       Drop("known"),
		"if a >= s.most {":                  Compare(">=", "most"),
		"\t\t\n\t\treturn true":             Delete("count"),
		"if s.empty() {":                    Call("full", "s.empty()"),
		"\tcase a < b && s.known:\n\t\ts.count = a\n\t\treturn true\n\t\n\t}": DropCase("off"),
		"s.count = b\n":         Swap("a", "b", "count"),
		"{ return false }":      Return("false"),
		"bool { s.leave();\n":   Prepend("s.leave();"),
		"case s.known:\n\t\t\n": Both(Drop("a"), Delete("count")),
	} {
		c, err := Find(folder, "*.go", "(*set).judge", edit)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(c.Fn.file.source[:c.from]) + c.text + string(c.Fn.file.source[c.to:]); !strings.Contains(text, want) {
			t.Errorf("%s: it has no %q: %s", c, want, text)
		}
	}
}

func TestMutantsAreTheSmallMistakesOfAFunction(t *testing.T) {
	all, err := Functions(writeOriginal(t), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, fn := range all {
		for _, c := range Mutants(fn) {
			got = append(got, c.String())
		}
	}
	for _, want := range []string{
		"p.go:4 (*set).each: “s.count++” is left out",
		"p.go:16 (*set).judge: “case a < b && s.known” is left out",
		"p.go:16 (*set).judge: “a < b && s.known” has ||",
		"p.go:16 (*set).judge: “a < b” has <=",
		"p.go:18 (*set).judge: “true” is negated",
		"p.go:22 (*set).judge: “s.full()” is negated",
		"p.go:22 (*set).judge: “{ return false }” is emptied",
		"p.go:26 (*set).judge: “a > s.most” has >=",
		"p.go:27 (*set).judge: “continue” is left out",
		"p.go:29 (*set).judge: “s.add(a + b)” is left out",
		"p.go:29 (*set).judge: “a + b” has -",
		"p.go:31 (*set).judge: “s.known” is negated",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if len(got) > 25 {
		t.Errorf("there are %d: %s", len(got), strings.Join(got, "\n"))
	}
}

func TestAnEditWithoutAUniquePlaceSaysWhatWasLookedFor(t *testing.T) {
	folder := writeOriginal(t)
	for want, edit := range map[string]Edit{
		"(*set).judge has 0 places to change, not 1: a call that uses nobody; name what does this now":  Call("nobody", "0"),
		"(*set).judge has 2 places to change, not 1: a name that uses known; name what does this now":   Swap("known", "off"),
		"(*set).judge has 2 places to change, not 1: a condition that uses a; name what does this now":  Never("a"),
		"(*set).judge has 0 places to change, not 1: a && or || that uses off; name what does this now": Drop("off"),
		"(*set).judge has 0 places to change, not 1: a case that uses full; name what does this now":    DropCase("full"),
		"(*set).judge has 4 places to change, not 1: a statement that uses s; name what does this now":  Delete("s"),
		"two edits overlap": Both(Return("false"), Delete("count")),
	} {
		if c, err := Find(folder, "*.go", "(*set).judge", edit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %s", c.What, err, want)
		}
	}
}

func TestMutantsOfAPackageAreFound(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	target := Target{Name: "steps", Files: []string{"internal/steps/*.go"}, Tests: []Test{{Package: "internal/steps", Run: "."}}}
	score, err := Measure(t.Context(), root, target, Options{Sample: 12, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if score.Mutants < 6 || score.Mutants != score.ByTests+len(score.Survivors) || score.Percent() < 50 {
		t.Error(score.Text())
	}
	t.Log(score.Text())
}
