package house

import (
	"bytes"
	"go/ast"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// parsed reads the repository once for all tests. The tests do not change the files.
var parsed = sync.OnceValues(func() ([]*File, error) { return Files(root) })

func files(t *testing.T) []*File {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("found %d Go files below %s; the walk is broken", len(all), root)
	}
	return all
}

// ban is a forbidden import.
type ban struct {
	from *regexp.Regexp // folders
	what *regexp.Regexp // import paths
	but  *regexp.Regexp // exceptions
	why  string
}

var bans = []ban{
	{regexp.MustCompile(`^(\.|store|source|keystore|identity|consumer(/internal/.*)?|faults|measure|memstore|sqlstore(/internal/.*)?|storetest|sourcetest|semeltest|file|webhook|internal/.*)$`), regexp.MustCompile(`^[^/]+\.[^/]+/`), regexp.MustCompile(`^` + module + `(/|$)`), "the core imports only the standard library, so that its users get no other dependencies"},
	{regexp.MustCompile(`^\.$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/internal/`), "arrows point down: the root package imports no package that uses it"},
	{regexp.MustCompile(`^(store|source)$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/(source$|internal/(enum|reading|legible|generations|versions)$)`), "arrows point down: the contract imports the root package only; types of fields that only our own stores read are internal"},
	{regexp.MustCompile(`^keystore$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/(store|internal/enum)$`), "arrows point down: the contract of leased keys imports the root package and store only"},
	{regexp.MustCompile(`^measure$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/internal/reasonname$`), "arrows point down: measurements go through interfaces, and measure imports no other package"},
	{regexp.MustCompile(`^identity$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/internal/`), "arrows point down: identity works on messages and knows no consumer, store or source"},
	{regexp.MustCompile(`^faults$`), regexp.MustCompile(`^` + module), nil, "a crash point is only a name, so faults needs no import"},
	{regexp.MustCompile(`^consumer$`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/((consumer/)?internal/.*|store|source|keystore|identity|faults|measure)$`), "the engine uses the contracts and imports no store or source"},
	{regexp.MustCompile(`^consumer/internal/`), regexp.MustCompile(`^` + module + `/`), regexp.MustCompile(`^` + module + `/((consumer/)?internal/.*|store|source|keystore|identity|measure|faults)$`), "what the consumer is made of knows neither its API nor a store or source"},
	{regexp.MustCompile(`^consumer/internal/(control|groupcommit|guard|notify|schema|scopes|sources|surrogate)$`), regexp.MustCompile(`^` + module + `/consumer/`), nil, "the packages at the bottom of the consumer do not use one another, so that each can be read alone"},
	{regexp.MustCompile(`^consumer/internal/(delivery|naming|report)$`), regexp.MustCompile(`^` + module + `/consumer/`), regexp.MustCompile(`/internal/(guard|surrogate)$`), "arrows point down: what is read and what is reported know neither claims nor flights"},
	{regexp.MustCompile(`^consumer/internal/upkeep$`), regexp.MustCompile(`^` + module + `/consumer/`), regexp.MustCompile(`/internal/(guard|delivery)$`), "arrows point down: what maintains a store beside the batches knows no batch"},
	{regexp.MustCompile(`^consumer/internal/inbox$`), regexp.MustCompile(`^` + module + `/consumer/`), regexp.MustCompile(`/internal/(control|guard|delivery|upkeep)$`), "arrows point down: claims are there before flights"},
	{regexp.MustCompile(`^consumer/internal/runner$`), regexp.MustCompile(`^` + module + `/consumer/`), regexp.MustCompile(`/internal/(groupcommit|guard|inbox|report)$`), "arrows point down: a runner is told what to do, and knows no engine"},
	{regexp.MustCompile(`^(memstore|sqlstore(/internal/.*)?|pgxstore|file|webhook|kafka(/internal/.*)?|nats|storetest|sourcetest|internal/([^h]|h[^a]).*)$`), regexp.MustCompile(`^` + module + `/consumer$`), nil, "stores, sources and suites use the contract, never the engine; only internal/handlertest, which tests users' handlers, runs it"},
	{regexp.MustCompile(`^internal/(worker|strictjson)$`), regexp.MustCompile(`^` + module), nil, "leaf helpers do not depend on Semel's types"},
	{regexp.MustCompile(`^internal/machine$`), regexp.MustCompile(`^` + module), regexp.MustCompile(`^` + module + `(/store|/source|/internal/(enum|reasonname))?$`), "the machine imports only the root package and the contract's lists, which are data that is declared once; it imports no code that acts on them"},
	{regexp.MustCompile(`^internal/machine$`), regexp.MustCompile(`^(os|io|net|sync|context|log.*|database/.*)$`), nil, "the machine does no I/O, holds no lock and waits for nothing"},
	{regexp.MustCompile(`^(memstore|sqlstore(/internal/.*)?|file|webhook)$`), regexp.MustCompile(`^` + module + `/(memstore|sqlstore|file|webhook|cmd|itest)`), regexp.MustCompile(`^` + module + `/sqlstore/internal/`), "adapters never import each other"},
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range files(t) {
		if f.Test() {
			continue
		}
		for _, spec := range f.Tree.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bans {
				if b.from.MatchString(f.Package()) && b.what.MatchString(path) && (b.but == nil || !b.but.MatchString(path)) {
					t.Errorf("%s:%d imports %s; %s", f.Path, f.Line(spec), path, b.why)
				}
			}
		}
	}
}

func TestTheCoreRequiresNothing(t *testing.T) {
	data, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "require") {
		t.Error("go.mod of the core has a require; the core may import only the standard library")
	}
}

// call reports whether a node is a call of the given function of the given package.
func call(n ast.Node, pkg, function string) bool {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != function {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestGoroutinesHaveOwners(t *testing.T) {
	for _, f := range files(t) {
		if f.Test() || f.Package() == "internal/worker" || strings.HasPrefix(f.Path, "itest/") || strings.HasPrefix(f.Path, "storetest/") || strings.HasPrefix(f.Path, "sourcetest/") || strings.HasPrefix(f.Path, "internal/simulator/") {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s:%d starts a goroutine; use internal/worker, so that each goroutine has an owner that waits for it", f.Path, f.Line(g))
			}
			return true
		})
	}
}

func TestNothingIsWiredByInit(t *testing.T) {
	for _, f := range files(t) {
		for _, d := range f.Tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d has an init function; pass values explicitly", f.Path, f.Line(fn))
			}
		}
	}
}

func TestNoTestSleepsOrIsSkipped(t *testing.T) {
	for _, f := range files(t) {
		if !f.Test() {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			if call(n, "time", "Sleep") {
				t.Errorf("%s:%d sleeps; use testing/synctest, a channel or the simulator", f.Path, f.Line(n))
			}
			for _, skip := range []string{"Skip", "Skipf", "SkipNow"} {
				if call(n, "t", skip) || call(n, "b", skip) {
					t.Errorf("%s:%d can be skipped, and a skipped test goes unnoticed", f.Path, f.Line(n))
				}
			}
			return true
		})
	}
}

// longest is the maximum number of lines of a file. A longer file probably has more than one subject.
const longest = 400

func TestFilesHoldOneSubject(t *testing.T) {
	for _, f := range files(t) {
		if f.Lines > longest {
			t.Errorf("%s has %d lines, more than %d; split it by subject", f.Path, f.Lines, longest)
		}
	}
}

// longestFunction is the maximum number of lines of a function. A function of 60 lines fits on a screen.
const longestFunction = 60

func TestFunctionsFitOnAScreen(t *testing.T) {
	for _, f := range files(t) {
		if f.Test() || strings.HasPrefix(f.Path, "storetest/") || strings.HasPrefix(f.Path, "sourcetest/") {
			continue
		}
		for _, d := range f.Tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := f.Set.Position(fn.End()).Line - f.Line(fn) + 1; n > longestFunction {
					t.Errorf("%s:%d: %s has %d lines, more than %d", f.Path, f.Line(fn), fn.Name.Name, n, longestFunction)
				}
			}
		}
	}
}

func TestExportedSymbolsOfTheLibraryAreDocumented(t *testing.T) {
	for _, f := range files(t) {
		if f.Test() || f.Tree.Name.Name == "main" || strings.Contains(f.Path, "internal/") {
			continue
		}
		for _, d := range f.Tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && fn.Doc == nil && exportedReceiver(fn) && !wellKnown[fn.Name.Name] {
				t.Errorf("%s:%d: %s has no comment", f.Path, f.Line(fn), fn.Name.Name)
			}
			if g, ok := d.(*ast.GenDecl); ok {
				undocumented(t, f, g)
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range files(t) {
		if !f.Test() {
			folder := filepath.Dir(f.Path)
			documented[folder] = documented[folder] || f.Tree.Doc != nil
		}
	}
	for folder, is := range documented {
		if !is {
			t.Errorf("%s: the package has no comment; say what it is for and what it promises", folder)
		}
	}
}

// wellKnown contains names of methods whose meaning the standard library defines.
var wellKnown = map[string]bool{"Error": true, "Unwrap": true, "String": true, "Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true, "Is": true}

func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	exported := true
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported && id.IsExported()
		}
		return true
	})
	return exported
}

func undocumented(t *testing.T, f *File, g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && g.Doc == nil && s.Doc == nil {
				t.Errorf("%s:%d: %s has no comment", f.Path, f.Line(s), s.Name.Name)
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && g.Doc == nil && s.Doc == nil && s.Comment == nil {
				t.Errorf("%s:%d: %s has no comment", f.Path, f.Line(s), s.Names[0].Name)
			}
		}
	}
}

func TestTheListOfWhatTestsCoverHasATestOfEachLaw(t *testing.T) {
	var list bytes.Buffer
	if err := WriteCoverage(&list, files(t)); err != nil {
		t.Fatal(err)
	}
	for law := 1; law <= 16; law++ {
		if row := "\n| law " + strconv.Itoa(law) + " | "; !strings.Contains(list.String(), row) {
			t.Errorf("no test covers law %d", law)
		}
	}
}

func TestThePicturesAreWhatTheImportsSay(t *testing.T) {
	for name, write := range map[string]func(io.Writer, []*File) error{"rooms.svg": WriteRooms, "way.svg": WriteWay, "retry.svg": WriteRetryWay} {
		var want bytes.Buffer
		if err := write(&want, files(t)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(root + "/docs/pictures/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/pictures/%s does not match the imports; run go run ./internal/house/picture", name)
		}
	}
}
