package planted

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A file with faults has a copy of each function that a fault changes, under
// another name and with the fault. The function begins by handing over to the
// copy whose fault is switched on. So one build has every fault, and none until
// one is switched on.

// schema is the text of one file to which faults are added.
type schema struct {
	text    *text
	edits   []edit
	copies  strings.Builder
	renamed map[*ast.Field]bool
}

// edit puts a text between two offsets of the file.
type edit struct {
	from, to int
	text     string
}

func newSchema(source string) (*schema, error) {
	t, err := parse(source)
	return &schema{text: t, renamed: map[*ast.Field]bool{}}, err
}

// add adds a fault, which is switched on by its number.
func (s *schema) add(f Fault, number int) error {
	if n := strings.Count(s.text.source, f.Old); n != 1 {
		return fmt.Errorf("%q stands %d times in %s, and must stand there once; give the fault its new text", f.Old, n, f.File)
	}
	changed, err := parse(strings.Replace(s.text.source, f.Old, f.New, 1))
	if err != nil {
		return err
	}
	function, err := s.text.differs(changed)
	if err != nil {
		return err
	}
	original, copied := s.text.functions[function], changed.functions[function]
	name := fmt.Sprintf("%sPlanted%d", copied.Name.Name, number)
	// The compiler's errors name the fault, for these lines are in no file.
	fmt.Fprintf(&s.copies, "\n//line %s:1\n%s%s%s\n", f.Name, changed.between(copied.Pos(), copied.Name.Pos()), name, changed.between(copied.Name.End(), copied.End()))
	s.handOver(original, name, number)
	return nil
}

// handOver has the function begin with a call of its copy, on the line of its
// brace, so that all lines keep their numbers.
func (s *schema) handOver(fn *ast.FuncDecl, name string, number int) {
	if fn.Recv != nil {
		name = s.named(fn.Recv.List[0], 0)[0] + "." + name
	}
	var arguments []string
	for i, field := range fn.Type.Params.List {
		names := s.named(field, i)
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			names[0] += "..."
		}
		arguments = append(arguments, names...)
	}
	call := fmt.Sprintf("return %s(%s)", name, strings.Join(arguments, ", "))
	if fn.Type.Results == nil {
		call = strings.TrimPrefix(call, "return ") + "; return"
	}
	brace := s.text.offset(fn.Body.Lbrace) + 1
	s.edits = append(s.edits, edit{brace, brace, fmt.Sprintf(" if plantedFault == %d { %s };", number, call)})
}

// named are the names of parameters that stand together. Those that have none
// are given one.
func (s *schema) named(field *ast.Field, position int) []string {
	place, names := s.text.offset(field.Type.Pos()), []string{}
	for i, id := range field.Names {
		if id.Name != "_" {
			names = append(names, id.Name)
			continue
		}
		name := fmt.Sprintf("planted%d_%d", position, i)
		s.rename(field, s.text.offset(id.Pos()), s.text.offset(id.End()), name)
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{fmt.Sprintf("planted%d", position)}
		s.rename(field, place, place, names[0]+" ")
	}
	s.renamed[field] = true
	return names
}

func (s *schema) rename(field *ast.Field, from, to int, name string) {
	if !s.renamed[field] {
		s.edits = append(s.edits, edit{from, to, name})
	}
}

// String is the file with all the faults that were added.
func (s *schema) String() string {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	end := 0
	for _, e := range s.edits {
		out.WriteString(s.text.source[end:e.from] + e.text)
		end = e.to
	}
	return out.String() + s.text.source[end:] + s.copies.String()
}

// switchOf is a further file of the package: it says which fault is on.
func (t *text) switchOf() string {
	return "package " + t.pkg + `

import (
	"os"
	"strconv"
)

var plantedFault, _ = strconv.Atoi(os.Getenv("` + number + `"))
`
}

// text is a file's text and its functions, by receiver and name.
type text struct {
	pkg       string
	source    string
	set       *token.FileSet
	functions map[string]*ast.FuncDecl
	// outside is all but the insides of functions.
	outside string
}

func parse(source string) (*text, error) {
	t := &text{source: source, set: token.NewFileSet(), functions: map[string]*ast.FuncDecl{}}
	file, err := parser.ParseFile(t.set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	t.pkg = file.Name.Name
	end := file.FileStart
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			head := t.between(fn.Pos(), fn.Body.Pos())
			t.functions[head] = fn
			t.outside += t.between(end, fn.Body.Pos())
			end = fn.Body.End()
		}
	}
	t.outside += t.between(end, file.FileEnd)
	return t, nil
}

func (t *text) offset(p token.Pos) int { return t.set.Position(p).Offset }

func (t *text) between(from, to token.Pos) string { return t.source[t.offset(from):t.offset(to)] }

// differs is the head of the one function whose inside is another in other.
func (t *text) differs(other *text) (string, error) {
	var heads []string
	for head, fn := range t.functions {
		if with := other.functions[head]; with == nil || t.between(fn.Body.Pos(), fn.End()) != other.between(with.Body.Pos(), with.End()) {
			heads = append(heads, head)
		}
	}
	if t.outside != other.outside || len(heads) != 1 {
		return "", errors.New("a fault changes the inside of one function, and nothing else")
	}
	return heads[0], nil
}
