package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// theMachine is the package whose files have a reading order.
const theMachine = "internal/machine"

// typed is a package and the types of its expressions and identifiers.
type typed struct {
	set   *token.FileSet
	files []*ast.File
	info  *types.Info
	own   *types.Package
}

// typedMachine returns the machine without its tests.
func typedMachine(t *testing.T) *typed {
	t.Helper()
	p, err := readMachine()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var readMachine = sync.OnceValues(func() (*typed, error) {
	names, err := filepath.Glob(filepath.Join(root, theMachine, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &typed{set: token.NewFileSet(), info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	imported, err := compiled("./" + theMachine)
	if err != nil {
		return nil, err
	}
	c := types.Config{Importer: importer.ForCompiler(p.set, "gc", imported)}
	p.own, err = c.Check(module+"/"+theMachine, p.set, p.files, p.info)
	return p, err
})

// compiled returns a lookup of the export data that the compiler has written for the imports of a package.
// Reading export data takes a tenth of the time of type-checking the sources.
func compiled(pkg string) (importer.Lookup, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", pkg)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export %s: %w", pkg, err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }, nil
}

// file returns the name of the file that contains a position.
func (p *typed) file(n interface{ Pos() token.Pos }) string {
	return filepath.Base(p.set.Position(n.Pos()).Filename)
}

// calls returns, for each function and method of the package, those functions of the package that it uses.
func (p *typed) calls() map[*types.Func][]*types.Func {
	calls := map[*types.Func][]*types.Func{}
	p.inspect(func(from *types.Func, n ast.Node) {
		id, ok := n.(*ast.Ident)
		if !ok {
			return
		}
		if to, ok := p.info.Uses[id].(*types.Func); ok && to.Pkg() == p.own && !slices.Contains(calls[from], to) {
			calls[from] = append(calls[from], to)
		}
	})
	return calls
}

func (p *typed) inspect(visit func(in *types.Func, n ast.Node)) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			in := p.info.Defs[fn.Name].(*types.Func)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				visit(in, n)
				return true
			})
		}
	}
}

// readingOrder returns the files of the machine in the order in which docs/internals/design.md lists
// them.
func readingOrder(t *testing.T) map[string]int {
	t.Helper()
	order := map[string]int{}
	_, list, _ := strings.Cut(section(t, design(t), "## How a message passes"), "The files of `"+theMachine+"`")
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		if _, ok := order[m[1]]; !ok && strings.HasSuffix(m[1], ".go") {
			order[m[1]] = len(order)
		}
	}
	return order
}

func TestTheReadingOrderHasEveryFileOfTheMachine(t *testing.T) {
	order := readingOrder(t)
	for _, f := range files(t) {
		if name := filepath.Base(f.Path); f.Package() == theMachine && !f.Test() {
			if _, ok := order[name]; !ok {
				t.Errorf("docs/internals/design.md does not list %s in the reading order", f.Path)
			}
		}
	}
}

// mostArrowsUp is the allowed number of exceptions: pairs of files in which the file that is later in the reading order
// calls the earlier file.
const mostArrowsUp = 0

func TestTheMachinesArrowsPointDown(t *testing.T) {
	p, order := typedMachine(t), readingOrder(t)
	up := map[string][]string{}
	down := map[string]bool{}
	for from, called := range p.calls() {
		for _, to := range called {
			arrow := p.file(from) + " → " + p.file(to)
			switch a, b := order[p.file(from)], order[p.file(to)]; {
			case b < a:
				up[arrow] = append(up[arrow], fmt.Sprintf("%s calls %s", from.Name(), to.Name()))
			case b > a:
				down[arrow] = true
			}
		}
	}
	t.Logf("%d pairs of files have arrows that point down, %d up", len(down), len(up))
	if len(down) < 30 {
		t.Error("almost no file of the machine calls another; the count is broken")
	}
	if len(up) <= mostArrowsUp {
		return
	}
	for _, arrow := range slices.Sorted(maps.Keys(up)) {
		slices.Sort(up[arrow])
		t.Errorf("%s: %s; a file may call only files that come later in the reading order", arrow, strings.Join(up[arrow], ", "))
	}
}

func TestNoFunctionOfTheMachineCallsItself(t *testing.T) {
	calls := typedMachine(t).calls()
	for _, from := range slices.SortedFunc(maps.Keys(calls), func(a, b *types.Func) int { return strings.Compare(a.FullName(), b.FullName()) }) {
		if way := wayTo(calls, from, from, map[*types.Func]bool{}); way != nil {
			t.Errorf("%s calls itself: %s; a reader must see that each step ends", from.Name(), strings.Join(way, " → "))
		}
	}
}

// wayTo returns a chain of calls from one function to another, or nil if there is none.
func wayTo(calls map[*types.Func][]*types.Func, from, to *types.Func, seen map[*types.Func]bool) []string {
	for _, next := range calls[from] {
		if next == to {
			return []string{from.Name(), to.Name()}
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		if way := wayTo(calls, next, to, seen); way != nil {
			return append([]string{from.Name()}, way...)
		}
	}
	return nil
}

// written returns the expressions to which a node assigns, or whose address it takes.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		return []ast.Expr{n.Key, n.Value}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	}
	return nil
}

func TestAnItemsStateHasOneWriter(t *testing.T) {
	p := typedMachine(t)
	ofPlacement := map[string]bool{"progress": true, "placement": true, "state": true, "until": true, "carrier": true}
	holder := func(s *types.Selection) string {
		return types.TypeString(s.Recv(), func(*types.Package) string { return "" })
	}
	writers := map[string]bool{}
	p.inspect(func(in *types.Func, n ast.Node) {
		for _, e := range written(n) {
			s, ok := e.(*ast.SelectorExpr)
			if !ok || p.info.Selections[s] == nil || !ofPlacement[s.Sel.Name] {
				continue
			}
			if of := strings.TrimPrefix(holder(p.info.Selections[s]), "*"); of == "Item" || of == "progress" || of == "placement" {
				writers[in.Name()] = true
			}
		}
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && (key.Name == "progress" || key.Name == "placement") {
				writers[in.Name()] = true
			}
		}
	})
	if got := slices.Sorted(maps.Keys(writers)); !slices.Equal(got, []string{"move"}) {
		t.Errorf("%v assigns an item's placement; only move also updates the fields that depend on it", got)
	}
}
