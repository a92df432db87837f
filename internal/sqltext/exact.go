package sqltext

import "strings"

// beforeParenthesis contains the words in Semel's SQL that can precede a parenthesis although they are no functions.
// The words belong to PostgreSQL's grammar, so the search_path does not change their meaning.
var beforeParenthesis = map[string]bool{
	"all": true, "any": true, "array": true, "cast": true, "coalesce": true, "exists": true, "extract": true, "greatest": true,
	"least": true, "nullif": true, "operator": true, "overlay": true, "position": true, "row": true, "some": true, "substring": true, "trim": true,
}

// Exact rewrites Semel's own SQL so that no object in a schema of the search_path can replace a built-in object.
// PostgreSQL prefers a function or an operator whose arguments match exactly, in any schema, to a built-in function or
// operator that needs a cast. So Exact adds the schema of the built-in objects to each function call. Exact also casts
// operands to the types of a built-in operator in the following expressions: a number times an interval, the result of
// extract times a whole number, and comparisons with to_regclass. The operands of all other operators have exact types
// already. For a dialect without a catalog, Exact returns the text unchanged.
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

// exacting is the state of Exact. The field code contains the tokens except spaces. The field before contains texts to
// insert: the key of a text that is inserted before a token is the position of the token, and the key of a text that is
// inserted after a token is the negated end of the token.
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
	case t.Is("unnest") && calls && e.several(i+1): // in this form the grammar calls the built-in function
	case t.Is("to_regclass") && calls:
		if i == 0 || !e.code[i-1].IsSign(".") {
			e.before[t.Start] = e.Catalog + "."
		}
		e.before[-e.code[min(e.closing(i+1), len(e.code)-1)].End] = "::oid" // the value with which to_regclass is compared
	case calls && !beforeParenthesis[t.Word] && (i == 0 || !e.code[i-1].IsSign(".")):
		e.before[t.Start] = e.Catalog + "."
	case t.Is("extract") && calls:
		end := e.closing(i + 1)
		if end+2 < len(e.code) && e.code[end+1].IsSign("*") && wholeNumber(e.text[e.code[end+2].Start:e.code[end+2].End]) {
			e.before[-e.code[end+2].End] = ".0" // extract returns numeric
		}
	case t.Is("interval") && i > 1 && e.code[i-1].IsSign("*"):
		e.before[-e.code[i-2].End] = "::float8" // Semel's SQL has no other product with an interval
	}
}

// closing returns the index of the closing parenthesis for the opening parenthesis at i.
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

// several reports whether the parentheses that open at i contain more than one argument.
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

// dollarTag returns the opening $tag$ of a text in dollar quotes. For other texts, dollarTag returns an empty
// string.
func dollarTag(literal string) string {
	if !strings.HasPrefix(literal, "$") {
		return ""
	}
	return literal[:strings.Index(literal[1:], "$")+2]
}
