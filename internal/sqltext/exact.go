package sqltext

import "strings"

// beforeParenthesis are the words of Semel's SQL that stand before a parenthesis without a
// blank and are no functions: PostgreSQL's grammar has them, and no search_path changes what
// they mean.
var beforeParenthesis = map[string]bool{
	"all": true, "any": true, "array": true, "cast": true, "coalesce": true, "exists": true, "extract": true, "greatest": true,
	"least": true, "nullif": true, "operator": true, "overlay": true, "position": true, "row": true, "some": true, "substring": true, "trim": true,
}

// Exact writes a text of Semel's own SQL so that no object in a schema of the search_path can
// take the place of a built-in one. PostgreSQL prefers a function or an operator whose
// arguments match exactly, in whatever schema, to a built-in one that needs a cast. So each
// function that is written directly before its parenthesis gets the schema of the built-in
// ones, and what Semel's SQL uses everywhere gets operands of exactly the types of a built-in
// operator: a number times an interval, what extract returns times a whole number, and what
// to_regclass returns. All other
// operators are written with exact types in the text. A dialect without a catalog leaves the
// text as it is.
func (d Dialect) Exact(text string) (string, error) {
	if d.Catalog == "" {
		return text, nil
	}
	tokens, err := d.Scan(text)
	if err != nil {
		return "", err
	}
	e := exacting{Dialect: d, text: text, before: map[int]string{}}
	for _, t := range tokens {
		if t.Kind != Space {
			e.code = append(e.code, t)
		}
	}
	for i := range e.code {
		e.look(i)
	}
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(e.before[t.Start])
		piece := text[t.Start:t.End]
		if tag := dollarTag(piece); t.Kind == Literal && tag != "" {
			inner, err := d.Exact(piece[len(tag) : len(piece)-len(tag)])
			if err != nil {
				return "", err
			}
			piece = tag + inner + tag
		}
		b.WriteString(piece)
		b.WriteString(e.before[-t.End])
	}
	return b.String(), nil
}

// exacting is a text on its way through Exact: code are its tokens but for blanks, and before
// what is written before the token that begins at a place, or, with that place negated, after
// the one that ends there.
type exacting struct {
	Dialect
	text   string
	code   []Token
	before map[int]string
}

func (e *exacting) look(i int) {
	t := e.code[i]
	calls := t.Kind == Name && !t.Quoted && i+1 < len(e.code) && e.code[i+1].IsSign("(") && e.code[i+1].Start == t.End
	switch {
	case t.Is("unnest") && calls && e.several(i+1): // the grammar makes calls of the built-in one
	case t.Is("to_regclass") && calls:
		if i == 0 || !e.code[i-1].IsSign(".") {
			e.before[t.Start] = e.Catalog + "."
		}
		e.before[-e.code[min(e.closing(i+1), len(e.code)-1)].End] = "::oid" // what it is compared with
	case calls && !beforeParenthesis[t.Word] && (i == 0 || !e.code[i-1].IsSign(".")):
		e.before[t.Start] = e.Catalog + "."
	case t.Is("extract") && calls:
		end := e.closing(i + 1)
		if end+2 < len(e.code) && e.code[end+1].IsSign("*") && wholeNumber(e.text[e.code[end+2].Start:e.code[end+2].End]) {
			e.before[-e.code[end+2].End] = ".0" // extract returns numeric
		}
	case t.Is("interval") && i > 1 && e.code[i-1].IsSign("*"):
		e.before[-e.code[i-2].End] = "::float8" // there is no other product with an interval
	}
}

// closing is where the parenthesis that opens at i is closed.
func (e *exacting) closing(i int) int {
	for depth := 0; i < len(e.code); i++ {
		switch {
		case e.code[i].IsSign("("):
			depth++
		case e.code[i].IsSign(")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// several reports whether there is more than one argument behind the parenthesis at i.
func (e *exacting) several(i int) bool {
	depth := 0
	for _, t := range e.code[i:] {
		switch {
		case t.IsSign("("), t.IsSign("["):
			depth++
		case t.IsSign(")"), t.IsSign("]"):
			depth--
		case t.IsSign(",") && depth == 1:
			return true
		}
		if depth == 0 {
			return false
		}
	}
	return false
}

func wholeNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// dollarTag is the opening $tag$ of a text in dollar quotes, empty of anything else.
func dollarTag(literal string) string {
	if !strings.HasPrefix(literal, "$") {
		return ""
	}
	return literal[:strings.Index(literal[1:], "$")+2]
}
