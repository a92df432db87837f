package sqltext

import (
	"slices"
	"strings"
)

// Statement contains the tokens of one statement without spaces and comments. A Statement has at least one token.
type Statement []Token

// Split splits tokens into statements at the semicolons outside of the bodies of triggers and functions. The
// result contains no empty statements.
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

// body counts open BEGIN … END blocks in a statement that creates a trigger or a function with BEGIN ATOMIC, including
// nested CASE … END.
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

// hasBody reports whether the statement creates an object that can have a body.
func (s Statement) hasBody() bool {
	for _, t := range s[:min(len(s), 5)] {
		if t.Is("trigger") || t.Is("function") || t.Is("procedure") {
			return true
		}
	}
	return false
}

// Begins reports whether the statement begins with a word or a parenthesis. If a statement begins with another
// character, a database may skip that character and run another statement than the text suggests.
func (s Statement) Begins() bool {
	first := s[0]
	if first.IsSign("(") {
		return true
	}
	return first.Kind == Name && !first.Quoted && first.Word[0] >= 'a' && first.Word[0] <= 'z'
}

// Ends reports whether the statement ends its transaction or replaces the transaction by another. ROLLBACK TO
// a savepoint does not end the transaction.
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

// Copies reports whether the statement is a COPY. The single word COPY does not count as a COPY statement.
func (s Statement) Copies() bool { return s[0].Is("copy") && len(s) > 1 }

// toSavepoint reports whether the statement continues with [ WORK | TRANSACTION ] TO after ROLLBACK.
func (s Statement) toSavepoint() bool {
	for _, t := range s[1:min(len(s), 3)] {
		if t.Is("to") {
			return true
		}
	}
	return false
}

// Ending returns the first statement of text that would end the transaction, or that does not begin like a statement.
// If no statement of text would end the transaction, Ending returns nil. If the text cannot be parsed, Ending returns
// an error.
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

// Ends reports whether a statement of text ends its transaction. If a text cannot be parsed, Ends returns false,
// because a database also rejects a text that cannot be parsed.
func (d Dialect) Ends(text string) bool { return d.has(text, Statement.Ends, enders...) }

// enders are the words with which statements that may end a transaction begin.
var enders = []string{"abort", "commit", "end", "prepare", "rollback"}

// Copies reports whether a statement of text is a COPY. If a text cannot be parsed, Copies returns false, because a
// database also rejects a text that cannot be parsed.
func (d Dialect) Copies(text string) bool { return d.has(text, Statement.Copies, "copy") }

// has reports whether the function matches returns true for a statement of the text. The parameter words lists the
// words with which a matching statement can begin. If the text is a single statement that begins with another word, has
// returns false without parsing the text.
func (d Dialect) has(text string, matches func(Statement) bool, words ...string) bool {
	if !strings.Contains(strings.TrimRight(text, "; \t\r\n"), ";") && text != "" && isLetter(text[0]) && !beginsWith(text, words) {
		return false
	}
	tokens, err := d.Scan(text)
	return err == nil && slices.ContainsFunc(Split(tokens), matches)
}

func beginsWith(text string, words []string) bool {
	for _, w := range words {
		if len(text) >= len(w) && strings.EqualFold(text[:len(w)], w) {
			return true
		}
	}
	return false
}

// Bare returns text without the spaces, comments and semicolons before its first statement and after its last
// statement, so that the result can be part of another statement. If the text cannot be parsed, Bare returns the text
// unchanged.
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
