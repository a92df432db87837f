package mutation

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Change replaces a part of one function's source.
type Change struct {
	// Fn is the changed function.
	Fn *Function
	// What describes the change in a few words.
	What     string
	from, to int // offsets in the file of the function
	text     string
}

// String returns file and line, the name of the function and the description of the change.
func (c Change) String() string {
	return fmt.Sprintf("%s:%d %s: %s", c.Fn.file.path, c.Fn.file.line(c.from), c.Fn.Name, c.What)
}

// Function is a function or method with a body.
type Function struct {
	// Name is the function's name. The name of a method includes its receiver: "(*Machine).Step" or
	// "Verdict.String".
	Name string
	file *file
	decl *ast.FuncDecl
}

// file is a parsed file.
type file struct {
	path   string // path in the module, with slashes
	source []byte
	set    *token.FileSet
	tree   *ast.File
}

// Functions parses the files that match pattern and returns their functions in source order. The parameter pattern is a
// slash-separated path in the tree at root, such as "internal/machine/*.go". Functions ignores test files.
func Functions(root, pattern string) ([]*Function, error) {
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, err
	}
	var all []*Function
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parse(root, p)
		if err != nil {
			return nil, err
		}
		all = append(all, f.functions()...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("mutation: no file matches %s, or none has a function; correct the pattern", pattern)
	}
	return all, nil
}

func parse(root, name string) (*file, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	inModule, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	f := &file{path: filepath.ToSlash(inModule), source: source, set: token.NewFileSet()}
	f.tree, err = parser.ParseFile(f.set, name, source, parser.SkipObjectResolution)
	return f, err
}

func (f *file) functions() (all []*Function) {
	for _, d := range f.tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name != "main" && fn.Name.Name != "_" {
			all = append(all, &Function{Name: f.nameOf(fn), file: f, decl: fn})
		}
	}
	return all
}

// nameOf returns the name of a function without type parameters: "(*list).add" is a method of list[T].
func (f *file) nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver, _, _ := strings.Cut(f.text(fn.Recv.List[0].Type), "[")
	if strings.HasPrefix(receiver, "*") {
		return "(" + receiver + ")." + fn.Name.Name
	}
	return receiver + "." + fn.Name.Name
}

// folder returns the folder of the function's package in the module.
func (fn *Function) folder() string { return path.Dir(fn.file.path) }

func (f *file) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *file) line(offset int) int { return 1 + bytes.Count(f.source[:offset], []byte("\n")) }

func (f *file) text(n ast.Node) string { return f.between(n.Pos(), n.End()) }

func (f *file) between(from, to token.Pos) string {
	return string(f.source[f.offset(from):f.offset(to)])
}

// shortText returns the text of a node on one line, shortened if it is long.
func (f *file) shortText(n ast.Node) string {
	var out bytes.Buffer
	if err := printer.Fprint(&out, f.set, n); err != nil {
		return f.text(n)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if most := 60; len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// replace returns the Change that replaces a node by a text.
func (fn *Function) replace(n ast.Node, text, what string) Change {
	return Change{Fn: fn, What: what, from: fn.file.offset(n.Pos()), to: fn.file.offset(n.End()), text: text}
}
