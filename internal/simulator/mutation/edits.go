package mutation

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// Edit makes a change in a function. The statement to change is found by the names of functions, fields, constants and
// variables in the code, so that an Edit still works after other changes of the text. The statement must be unique in
// the function; if it is not, the error contains the names that Edit looked for.
type Edit func(*Function) (Change, error)

// Find returns the change that an edit makes in a function. The function is in the files that match pattern.
func Find(root, pattern, function string, edit Edit) (Change, error) {
	all, err := Functions(root, pattern)
	if err != nil {
		return Change{}, err
	}
	for _, fn := range all {
		if fn.Name == function {
			return edit(fn)
		}
	}
	return Change{}, fmt.Errorf("%s has no function %s; name the function that does this now", pattern, function)
}

// Delete removes a statement that has no block, for example a call, an assignment or a return.
func Delete(names ...string) Edit {
	return func(fn *Function) (Change, error) {
		s, err := findOne(fn, "statement", names, func(n ast.Stmt) ast.Node {
			if isRemovable(n) {
				return n
			}
			return nil
		})
		if err != nil {
			return Change{}, err
		}
		return fn.deletion(s), nil
	}
}

// Never makes a condition false. The condition belongs to an if, a loop, or a case of a switch without a
// value.
func Never(names ...string) Edit { return condition(" && false", "is never true", names) }

// Always makes a condition true.
func Always(names ...string) Edit { return condition(" || true", "is always true", names) }

func condition(and, what string, names []string) Edit {
	return func(fn *Function) (Change, error) {
		e, err := findOne(fn, "condition", names, fn.conditions())
		if err != nil {
			return Change{}, err
		}
		return fn.replace(e, "("+fn.file.text(e)+")"+and, fn.file.shortText(e)+" "+what), nil
	}
}

// conditions returns a function that finds the condition of an if, a loop or a case. A case of a switch with a
// value has no condition.
func (fn *Function) conditions() func(ast.Node) ast.Node {
	cases := map[ast.Node]bool{}
	return func(n ast.Node) ast.Node {
		switch n := n.(type) {
		case *ast.IfStmt:
			return n.Cond
		case *ast.ForStmt:
			if n.Cond != nil {
				return n.Cond
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				cases[c] = n.Tag == nil
			}
		case *ast.CaseClause:
			if cases[n] && len(n.List) == 1 {
				return n.List[0]
			}
		}
		return nil
	}
}

// Drop removes the operand of && or || that uses the given name. If several conditions have an operand with the name,
// the parameter beside lists other names in the condition.
func Drop(name string, beside ...string) Edit {
	return func(fn *Function) (Change, error) {
		side := func(n *ast.BinaryExpr) ast.Node {
			if chain(n) && findOperand(n, name) != nil {
				return n
			}
			return nil
		}
		n, err := findOne(fn, "&& or ||", append([]string{name}, beside...), side)
		if err != nil {
			return Change{}, err
		}
		b := n.(*ast.BinaryExpr)
		drop, keep := b.Y, b.X
		if findOperand(b, name) == b.X {
			drop, keep = b.X, b.Y
		}
		return fn.replace(b, fn.file.text(keep), fn.file.shortText(drop)+" is not asked"), nil
	}
}

// findOperand returns the operand of && or || that uses a name and does not itself consist of operands.
func findOperand(b *ast.BinaryExpr, name string) ast.Expr {
	for _, e := range []ast.Expr{b.Y, b.X} {
		if mentions(e, []string{name}) && !chain(e) {
			return e
		}
	}
	return nil
}

// chain reports whether e is an expression with && or || and without parentheses around it.
func chain(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && (b.Op == token.LAND || b.Op == token.LOR)
}

// DropCase removes a case of a switch with a value, or of a select.
func DropCase(names ...string) Edit {
	return func(fn *Function) (Change, error) {
		var about ast.Node
		_, err := findOne(fn, "case", names, func(n *ast.CaseClause) ast.Node {
			for _, e := range n.List {
				if mentions(e, names) {
					about = n
					return e
				}
			}
			return nil
		})
		if err != nil {
			return Change{}, err
		}
		return fn.replace(about, "", "the case of "+strings.Join(names, ", ")+" is gone"), nil
	}
}

// Call replaces a call by an expression. If the function is called several times, the parameter beside lists other
// names in the call.
func Call(function, expression string, beside ...string) Edit {
	return func(fn *Function) (Change, error) {
		c, err := findOne(fn, "call", append([]string{function}, beside...), func(n *ast.CallExpr) ast.Node {
			if calleeName(n) == function {
				return n
			}
			return nil
		})
		if err != nil {
			return Change{}, err
		}
		return fn.replace(c, expression, fn.file.shortText(c)+" becomes "+expression), nil
	}
}

// Swap replaces a name by another name. If the name is used several times, the parameter beside selects one use: in the
// innermost statement or case that also uses the names in beside.
func Swap(name, other string, beside ...string) Edit {
	return func(fn *Function) (Change, error) {
		within, err := fn.innermost(append([]string{name}, beside...))
		if err != nil {
			return Change{}, err
		}
		id, err := findOneIn(fn, within, "name", []string{name}, func(n *ast.Ident) ast.Node { return n })
		if err != nil {
			return Change{}, err
		}
		return fn.replace(id, other, name+" becomes "+other), nil
	}
}

// innermost returns the smallest statement that uses all names. For a single name, the result is the function's body.
func (fn *Function) innermost(names []string) (ast.Node, error) {
	if len(names) == 1 {
		return fn.decl.Body, nil
	}
	return findOne(fn, "statement", names, func(n ast.Stmt) ast.Node { return n })
}

// Compare replaces the operator of a comparison or a sum.
func Compare(operator string, names ...string) Edit {
	return func(fn *Function) (Change, error) {
		n, err := findOne(fn, "comparison or sum", names, func(n *ast.BinaryExpr) ast.Node {
			if chain(n) {
				return nil
			}
			return n
		})
		if err != nil {
			return Change{}, err
		}
		b := n.(*ast.BinaryExpr)
		text := fn.file.text(b.X) + " " + operator + " " + fn.file.text(b.Y)
		return fn.replace(b, text, fn.file.shortText(b)+" becomes "+text), nil
	}
}

// Return replaces the body of a function by the return of an expression. The parameter expression is "" for a function
// without results.
func Return(expression string) Edit {
	return func(fn *Function) (Change, error) {
		return fn.replace(fn.decl.Body, "{ return "+expression+" }", "returns "+expression+" at once"), nil
	}
}

// Prepend inserts statements at the beginning of a function. The statements end with a semicolon.
func Prepend(statements string) Edit {
	return func(fn *Function) (Change, error) {
		begin := fn.file.offset(fn.decl.Body.Lbrace) + 1
		return Change{Fn: fn, What: "begins with " + statements, from: begin, to: begin, text: " " + statements}, nil
	}
}

// Both makes two edits in one function, which must not overlap.
func Both(one, other Edit) Edit {
	return func(fn *Function) (Change, error) {
		a, err := one(fn)
		if err != nil {
			return a, err
		}
		b, err := other(fn)
		if err != nil {
			return b, err
		}
		if b.from < a.from {
			a, b = b, a
		}
		if b.from < a.to {
			return a, fmt.Errorf("%s: %s: two edits overlap", fn.file.path, fn.Name)
		}
		return Change{Fn: fn, What: a.What + ", and " + b.What, from: a.from, to: b.to, text: a.text + string(fn.file.source[a.to:b.from]) + b.text}, nil
	}
}

// findOne returns the node of a function that the function pick accepts and that uses all names. If several nodes
// match, findOne returns an error.
func findOne[N ast.Node](fn *Function, kind string, names []string, pick func(N) ast.Node) (ast.Node, error) {
	return findOneIn(fn, fn.decl.Body, kind, names, pick)
}

// findOneIn does the same as findOne, within a part of the function. If nested nodes match, findOneIn returns the
// innermost.
func findOneIn[N ast.Node](fn *Function, within ast.Node, kind string, names []string, pick func(N) ast.Node) (ast.Node, error) {
	var found []ast.Node
	ast.Inspect(within, func(n ast.Node) bool {
		candidate, ok := n.(N)
		if !ok {
			return true
		}
		if place := pick(candidate); place != nil && mentions(place, names) {
			if last := len(found) - 1; last >= 0 && found[last].Pos() <= place.Pos() && place.End() <= found[last].End() {
				found = found[:last]
			}
			found = append(found, place)
		}
		return true
	})
	if len(found) == 1 {
		return found[0], nil
	}
	return nil, fmt.Errorf("%s: %s has %d places to change, not 1: a %s that uses %s; name what does this now",
		fn.file.path, fn.Name, len(found), kind, strings.Join(names, " and "))
}

// mentions reports whether each name occurs as an identifier or a field in a node.
func mentions(n ast.Node, names []string) bool {
	for _, name := range names {
		there := false
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			there = there || ok && id.Name == name
			return !there
		})
		if !there {
			return false
		}
	}
	return true
}

// calleeName returns the name of the called function or method.
func calleeName(c *ast.CallExpr) string {
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// isRemovable reports whether a statement can be removed: it has no block and declares nothing.
func isRemovable(n ast.Stmt) bool {
	switch s := n.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.BranchStmt, *ast.ReturnStmt, *ast.SendStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	}
	return false
}

// deletion returns the change that removes a statement.
func (fn *Function) deletion(s ast.Node) Change {
	return fn.replace(s, "", "“"+fn.file.shortText(s)+"” is left out")
}
