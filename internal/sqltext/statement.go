package sqltext

import (
	"slices"
	"strings"
)

// Statement is the tokens of one statement without blanks and comments; it has
// one at least.
type Statement []Token

// Split cuts tokens into statements at the semicolons outside of the bodies of
// triggers and functions. A statement of nothing is none.
func Split(tokens []Token) []Statement {
	var all []Statement
	var one Statement
	var b body
	for _, t := range tokens {
		if t.Kind == Space {
			continue
		}
		if b.depth == 0 && t.IsSign(";") {
			if len(one) > 0 {
				all = append(all, one)
			}
			one, b = nil, body{}
			continue
		}
		one = append(one, t)
		b.take(one)
	}
	if len(one) > 0 {
		all = append(all, one)
	}
	return all
}

// body follows BEGIN … END in a statement that creates something with a body:
// a trigger, or a function with BEGIN ATOMIC. CASE … END is a pair inside.
type body struct{ depth int }

func (b *body) take(s Statement) {
	if !s[0].Is("create") || s[len(s)-1].Kind != Name {
		return
	}
	switch last := s[len(s)-1]; {
	case last.Is("begin") && b.depth == 0 && s.hasBody(), last.Is("case") && b.depth > 0:
		b.depth++
	case last.Is("end") && b.depth > 0:
		b.depth--
	}
}

// hasBody reports whether the statement creates what may have a body.
func (s Statement) hasBody() bool {
	for _, t := range s[:min(len(s), 5)] {
		if t.Is("trigger") || t.Is("function") || t.Is("procedure") {
			return true
		}
	}
	return false
}

// Begins reports whether the statement begins as one does: with a word of the
// language, or a parenthesis. What else stands there may be passed over by the
// database, and then the statement is another than it looks.
func (s Statement) Begins() bool {
	first := s[0]
	if first.IsSign("(") {
		return true
	}
	return first.Kind == Name && !first.Quoted && first.Word[0] >= 'a' && first.Word[0] <= 'z'
}

// Ends reports whether the statement ends the transaction that it runs in, or
// gives it another. Going back to a savepoint does not.
func (s Statement) Ends() bool {
	switch first := s[0]; {
	case first.Is("commit"), first.Is("end"), first.Is("abort"):
		return true
	case first.Is("rollback"):
		return !s.toSavepoint()
	case first.Is("prepare"):
		return len(s) > 1 && s[1].Is("transaction")
	}
	return false
}

// Copies reports whether the statement is a COPY. The word alone is none.
func (s Statement) Copies() bool { return s[0].Is("copy") && len(s) > 1 }

// toSavepoint: ROLLBACK [ WORK | TRANSACTION ] TO.
func (s Statement) toSavepoint() bool {
	for _, t := range s[1:min(len(s), 3)] {
		if t.Is("to") {
			return true
		}
	}
	return false
}

// Ending finds the first statement of text that would end the transaction, or
// that does not begin as a statement does; nil if there is none. A text that
// cannot be read is an error.
func (d Dialect) Ending(text string) (Statement, error) {
	tokens, err := d.Scan(text)
	if err != nil {
		return nil, err
	}
	for _, s := range Split(tokens) {
		if s.Ends() || !s.Begins() {
			return s, nil
		}
	}
	return nil, nil
}

// Ends reports whether a statement of text ends the transaction that it runs
// in. A text that cannot be read ends nothing: no database takes it either.
func (d Dialect) Ends(text string) bool { return d.has(text, Statement.Ends, enders...) }

// enders begin the statements that may end a transaction.
var enders = []string{"abort", "commit", "end", "prepare", "rollback"}

// Copies reports whether a statement of text is a COPY. A text that cannot be
// read is none: no database takes it either.
func (d Dialect) Copies(text string) bool { return d.has(text, Statement.Copies, "copy") }

// has reports whether there is such a statement in text. All of them begin with
// one of the words, so that it is quick for a text of one statement that begins
// with another.
func (d Dialect) has(text string, is func(Statement) bool, words ...string) bool {
	if !strings.Contains(strings.TrimRight(text, "; \t\r\n"), ";") && text != "" && isLetter(text[0]) && !beginsWith(text, words) {
		return false
	}
	tokens, err := d.Scan(text)
	return err == nil && slices.ContainsFunc(Split(tokens), is)
}

func beginsWith(text string, words []string) bool {
	for _, w := range words {
		if len(text) >= len(w) && strings.EqualFold(text[:len(w)], w) {
			return true
		}
	}
	return false
}

// Bare is text without the blanks, comments and semicolons before its first
// statement and after its last one: what can be put into another statement. A
// text that cannot be read is left as it is.
func (d Dialect) Bare(text string) string {
	tokens, err := d.Scan(text)
	if err != nil {
		return text
	}
	statements := Split(tokens)
	if len(statements) == 0 {
		return text
	}
	last := statements[len(statements)-1]
	return text[statements[0][0].Start:last[len(last)-1].End]
}
