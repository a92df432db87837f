package sqltext

import (
	"fmt"
	"strings"
)

// Kind is the kind of a token.
type Kind uint8

// The kinds.
const (
	// Space is a sequence of spaces and comments.
	Space Kind = iota
	// Name is a keyword, a name or a quoted name.
	Name
	// Literal is a text or a number.
	Literal
	// Param is a parameter :name.
	Param
	// Foreign is a placeholder of the driver.
	Foreign
	// Operator is any other character, or one of "::", "||" and ":=".
	Operator
)

// Token is the part text[Start:End] of a statement.
type Token struct {
	Kind       Kind
	Start, End int
	// Word is the lower-case text of a name, the name of a parameter, the operator, or the lower-case contents of
	// a text in single quotes, with its escapes unchanged. A name without quotes may be a keyword.
	Word   string
	Quoted bool
}

// Is reports whether the token is the given keyword, which must be in lower case.
func (t Token) Is(keyword string) bool { return t.Kind == Name && !t.Quoted && t.Word == keyword }

// IsSign reports whether the token is the given operator.
func (t Token) IsSign(sign string) bool { return t.Kind == Operator && t.Word == sign }

// scanner splits SQL into tokens. A scanner understands only enough SQL to distinguish code from quotes and
// comments.
type scanner struct {
	Dialect
	text   string
	at     int
	tokens []Token
}

// Scan splits text into tokens. The tokens together contain the whole text.
func (d Dialect) Scan(text string) ([]Token, error) {
	s := &scanner{Dialect: d, text: text}
	for s.at < len(s.text) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	return s.tokens, nil
}

func (s *scanner) next() error {
	c := s.text[s.at]
	rest := s.text[s.at:]
	switch {
	case isBlank(c):
		s.add(Space, s.while(s.at, isBlank))
	case strings.HasPrefix(rest, "--"):
		s.add(Space, s.lineEnd())
	case strings.HasPrefix(rest, "/*"):
		return s.comment()
	case c == '\'':
		return s.quotedText(s.at, s.escapes())
	case c == '"' || c == '`' && s.Brackets:
		return s.quotedName(c)
	case c == '[' && s.Brackets:
		return s.quotedName(']')
	case c == '$' && s.DollarBodies && s.dollarTag() != "":
		return s.dollarBody()
	case isDigit(c):
		s.add(Literal, s.while(s.at, isNumberByte))
	case isNameStart(c):
		s.add(Name, s.while(s.at, isNameByte))
	default:
		s.sign(c, rest)
	}
	return nil
}

// sign reads an operator or a placeholder.
func (s *scanner) sign(c byte, rest string) {
	switch {
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "||"), strings.HasPrefix(rest, ":="):
		s.add(Operator, s.at+2)
	case c == ':' && len(rest) > 1 && isNameStart(rest[1]):
		s.add(Param, s.while(s.at+1, isNameByte))
	case strings.IndexByte(s.Placeholders, c) >= 0 && s.isPlaceholder(c, rest):
		s.add(Foreign, s.while(s.at+1, isNameByte))
	default:
		s.add(Operator, s.at+1)
	}
}

func (s *scanner) isPlaceholder(c byte, rest string) bool {
	return c == '?' || len(rest) > 1 && isNameByte(rest[1])
}

func (s *scanner) add(k Kind, end int) {
	t := Token{Kind: k, Start: s.at, End: end}
	if k == Name || k == Operator {
		t.Word = strings.ToLower(s.text[s.at:end])
	}
	if k == Param {
		t.Word = s.text[s.at+1 : end]
	}
	s.tokens = append(s.tokens, t)
	s.at = end
}

func (s *scanner) while(from int, is func(byte) bool) int {
	for from < len(s.text) && is(s.text[from]) {
		from++
	}
	return from
}

// lineEnd returns the end of a comment that begins with --. A carriage return ends a comment with -- in PostgreSQL, but
// not in SQLite.
func (s *scanner) lineEnd() int {
	ends := "\n"
	if s.DollarBodies {
		ends = "\r\n"
	}
	if i := strings.IndexAny(s.text[s.at:], ends); i >= 0 {
		return s.at + i
	}
	return len(s.text)
}

// comment reads a comment /* … */. If the dialect has dollar quotes, comments can be nested.
func (s *scanner) comment() error {
	depth, i := 1, s.at+2
	for depth > 0 {
		closing := strings.Index(s.text[i:], "*/")
		if closing < 0 {
			return s.open("a comment")
		}
		if opening := strings.Index(s.text[i:i+closing], "/*"); s.DollarBodies && opening >= 0 {
			depth, i = depth+1, i+opening+2
			continue
		}
		depth, i = depth-1, i+closing+2
	}
	s.add(Space, i)
	return nil
}

// escapes reports whether the text that begins at the current position has backslash escapes, as in PostgreSQL's E'…'.
func (s *scanner) escapes() bool {
	if !s.DollarBodies || len(s.tokens) == 0 {
		return false
	}
	last := s.tokens[len(s.tokens)-1]
	return last.End == s.at && last.Word == "e"
}

func (s *scanner) quotedText(from int, escapes bool) error {
	for i := from + 1; i < len(s.text); i++ {
		switch {
		case escapes && s.text[i] == '\\':
			i++
		case s.text[i] != '\'':
		case i+1 < len(s.text) && s.text[i+1] == '\'':
			i++
		default:
			word := strings.ToLower(s.text[from+1 : i])
			s.add(Literal, i+1)
			s.tokens[len(s.tokens)-1].Word = word
			return nil
		}
	}
	return s.open("a text")
}

func (s *scanner) quotedName(end byte) error {
	for i := s.at + 1; i < len(s.text); i++ {
		if s.text[i] != end {
			continue
		}
		if end != ']' && i+1 < len(s.text) && s.text[i+1] == end {
			i++
			continue
		}
		word := strings.ToLower(s.text[s.at+1 : i])
		s.add(Name, i+1)
		last := &s.tokens[len(s.tokens)-1]
		last.Word, last.Quoted = word, true
		return nil
	}
	return s.open("a quoted name")
}

// dollarTag returns the opening $tag$ at the current position, or "" if there is none.
func (s *scanner) dollarTag() string {
	i := s.at + 1
	if i < len(s.text) && isNameStart(s.text[i]) {
		i = s.while(i, func(c byte) bool { return isNameByte(c) && c != '$' })
	}
	if i < len(s.text) && s.text[i] == '$' {
		return s.text[s.at : i+1]
	}
	return ""
}

func (s *scanner) dollarBody() error {
	tag := s.dollarTag()
	i := strings.Index(s.text[s.at+len(tag):], tag)
	if i < 0 {
		return s.open("a text in " + tag)
	}
	s.add(Literal, s.at+2*len(tag)+i)
	return nil
}

func (s *scanner) open(what string) error {
	return fmt.Errorf("%s that begins at character %d never ends", what, len([]rune(s.text[:s.at]))+1)
}

// isBlank reports whether PostgreSQL and SQLite treat c as white space. Characters outside ASCII are part of names in
// both databases, except the byte-order mark at the start of a file, which SQLite skips.
func isBlank(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isNameStart(c byte) bool {
	return c == '_' || isLetter(c) || c >= 0x80
}
func isNameByte(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

// isNumberByte accepts more characters than numbers contain. The additional characters do no harm, because a token that
// begins with a digit is neither a name nor a parameter.
func isNumberByte(c byte) bool { return isDigit(c) || c == '.' || isNameStart(c) }

// Quoted returns a name as a quoted identifier of SQL.
func Quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
