package mutation

import (
	"go/ast"
	"go/token"
)

// Mutants returns the small mistakes that could be made in a function:
//   - the condition of an if is negated;
//   - the operator of a comparison, of && and ||, or of + and - is replaced;
//   - a returned bool is negated;
//   - a call, an assignment, a break, a continue or a return without results is removed;
//   - the body of an if, or its else, is emptied;
//   - a case is removed.
//
// Some of the results do not compile; Compiling removes those.
func Mutants(fn *Function) []Change {
	m := &mutants{fn: fn}
	ast.Inspect(fn.decl.Body, func(n ast.Node) bool {
		m.add(n)
		return true
	})
	return m.all
}

type mutants struct {
	fn  *Function
	all []Change
}

func (m *mutants) add(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.conditional(n)
	case *ast.BinaryExpr:
		m.operator(n)
	case *ast.ReturnStmt:
		m.returned(n)
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.caseClause(n)
		m.statements(n.Body)
	case *ast.CommClause:
		m.all = append(m.all, m.fn.replace(n, "", "a case of select is left out"))
		m.statements(n.Body)
	}
}

func (m *mutants) conditional(n *ast.IfStmt) {
	if b, compares := n.Cond.(*ast.BinaryExpr); !compares || others[b.Op] == token.ILLEGAL || b.Op == token.LAND || b.Op == token.LOR {
		m.negate(n.Cond)
	}
	if len(n.Body.List) > 1 || len(n.Body.List) == 1 && !deletable(n.Body.List[0]) {
		m.empty(n.Body)
	}
	if block, ok := n.Else.(*ast.BlockStmt); ok && len(block.List) > 0 && (len(block.List) > 1 || !deletable(block.List[0])) {
		m.empty(block)
	}
}

func (m *mutants) negate(e ast.Expr) {
	m.all = append(m.all, m.fn.replace(e, "!("+m.fn.file.text(e)+")", "“"+m.fn.file.shortText(e)+"” is negated"))
}

func (m *mutants) empty(b *ast.BlockStmt) {
	m.all = append(m.all, m.fn.replace(b, "{}", "“"+m.fn.file.shortText(b)+"” is emptied"))
}

// others maps operators to their replacements.
var others = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

func (m *mutants) operator(n *ast.BinaryExpr) {
	other, ok := others[n.Op]
	if !ok {
		return
	}
	// The parentheses keep the precedence of the other operators.
	text := "((" + m.fn.file.text(n.X) + ") " + other.String() + " (" + m.fn.file.text(n.Y) + "))"
	m.all = append(m.all, m.fn.replace(n, text, "“"+m.fn.file.shortText(n)+"” has "+other.String()))
}

// The method returned negates each returned bool. If the returned expression is a comparison, the method replaces the
// operator instead.
func (m *mutants) returned(n *ast.ReturnStmt) {
	results := m.fn.decl.Type.Results
	if results == nil {
		return
	}
	var bools []bool
	for _, field := range results.List {
		id, ok := field.Type.(*ast.Ident)
		for range max(1, len(field.Names)) {
			bools = append(bools, ok && id.Name == "bool")
		}
	}
	for i, e := range n.Results {
		b, binary := e.(*ast.BinaryExpr)
		if len(n.Results) == len(bools) && bools[i] && (!binary || b.Op == token.LAND || b.Op == token.LOR) {
			m.negate(e)
		}
	}
}

func (m *mutants) statements(list []ast.Stmt) {
	for _, s := range list {
		if deletable(s) {
			m.all = append(m.all, m.fn.deletion(s))
		}
	}
}

// deletable reports whether a statement may be removed; a return with results may not.
func deletable(s ast.Stmt) bool {
	r, returns := s.(*ast.ReturnStmt)
	return isRemovable(s) && (!returns || len(r.Results) == 0)
}

// caseClause removes a case. If the case has a condition, the condition is made false, so that its names are
// still used.
func (m *mutants) caseClause(n *ast.CaseClause) {
	if len(n.List) == 0 {
		return
	}
	m.all = append(m.all, m.fn.replace(n, "", "“case "+m.fn.file.shortText(n.List[0])+"” is left out"))
}
