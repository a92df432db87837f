package mutation

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// numbered is a change with its number.
type numbered struct {
	Change
	number int
}

// schema is the text of one file to which changes are added.
type schema struct {
	file    *file
	edits   []insertion
	copies  strings.Builder
	renamed map[*ast.Field]bool
}

// insertion replaces the text between two offsets of the file.
type insertion struct {
	from, to int
	text     string
}

// schemaOf returns the text of a file with all changes of its functions. In the result, no change is switched on.
func schemaOf(f *file, changes []numbered) string {
	s := &schema{file: f, renamed: map[*ast.Field]bool{}}
	for _, fn := range f.functions() {
		var of []numbered
		for _, c := range changes {
			if c.Fn.file.offset(c.Fn.decl.Pos()) == f.offset(fn.decl.Pos()) {
				of = append(of, c)
				s.copy(fn.decl, c)
			}
		}
		if len(of) > 0 {
			s.handOver(fn.decl, of)
		}
	}
	return s.String()
}

// copyName returns the name of a function's changed copy.
func copyName(fn *ast.FuncDecl, number int) string {
	return fmt.Sprintf("%sMutant%d", fn.Name.Name, number)
}

// copy appends the changed function. The lines of the changed function get the number of the change in place of a file
// name, so that compiler errors and stack traces name the change.
func (s *schema) copy(fn *ast.FuncDecl, c numbered) {
	f := s.file
	body := string(f.source[f.offset(fn.Name.End()):c.from]) + c.text + string(f.source[c.to:f.offset(fn.End())])
	fmt.Fprintf(&s.copies, "\n//line mutant%d:1\n%s%s%s\n", c.number, f.between(fn.Pos(), fn.Name.Pos()), copyName(fn, c.number), body)
}

// handOver inserts, at the beginning of a function, a call of the changed copy that is switched on. No line is added,
// so that the line numbers do not change.
func (s *schema) handOver(fn *ast.FuncDecl, changes []numbered) {
	receiver, instance := "", typeArguments(fn)
	if fn.Recv != nil {
		receiver = s.named(fn.Recv.List[0], 0)[0] + "."
	}
	var arguments []string
	for i, field := range fn.Type.Params.List {
		names := s.named(field, i)
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			names[0] += "..."
		}
		arguments = append(arguments, names...)
	}
	var cases strings.Builder
	for _, c := range changes {
		call := fmt.Sprintf("%s%s%s(%s)", receiver, copyName(fn, c.number), instance, strings.Join(arguments, ", "))
		if fn.Type.Results == nil {
			fmt.Fprintf(&cases, "case %d: %s; return; ", c.number, call)
		} else {
			fmt.Fprintf(&cases, "case %d: return %s; ", c.number, call)
		}
	}
	brace := s.file.offset(fn.Body.Lbrace) + 1
	s.edits = append(s.edits, insertion{brace, brace, fmt.Sprintf(" switch semelMutant { %s};", cases.String())})
}

// typeArguments returns the type parameters of a generic function as type arguments of a call.
func typeArguments(fn *ast.FuncDecl) string {
	if fn.Type.TypeParams == nil {
		return ""
	}
	var names []string
	for _, field := range fn.Type.TypeParams.List {
		for _, id := range field.Names {
			names = append(names, id.Name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// The method named returns the names of the parameters in a field. Parameters without a name get a name.
func (s *schema) named(field *ast.Field, position int) []string {
	place, names := s.file.offset(field.Type.Pos()), []string{}
	for i, id := range field.Names {
		if id.Name != "_" {
			names = append(names, id.Name)
			continue
		}
		name := fmt.Sprintf("semel%d_%d", position, i)
		s.rename(field, s.file.offset(id.Pos()), s.file.offset(id.End()), name)
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{fmt.Sprintf("semel%d", position)}
		s.rename(field, place, place, names[0]+" ")
	}
	s.renamed[field] = true
	return names
}

func (s *schema) rename(field *ast.Field, from, to int, name string) {
	if !s.renamed[field] {
		s.edits = append(s.edits, insertion{from, to, name})
	}
}

// String returns the file with all added changes.
func (s *schema) String() string {
	slices.SortStableFunc(s.edits, func(a, b insertion) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	end := 0
	for _, e := range s.edits {
		out.WriteString(string(s.file.source[end:e.from]) + e.text)
		end = e.to
	}
	return out.String() + string(s.file.source[end:]) + s.copies.String()
}
