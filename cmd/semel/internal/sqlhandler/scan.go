package sqlhandler

import (
	"fmt"
	"strings"
)

// tokenKind is what a piece of SQL text is.
type tokenKind uint8

const (
	space    tokenKind = iota // blanks and comments
	name                      // a keyword, a name, a quoted name
	literal                   // a text or a number
	param                     // :name
	foreign                   // a placeholder that is not Semel's
	operator                  // anything else, one character; "::" and "||" are one
)

// token is a piece of a statement: text[start:end].
type token struct {
	kind       tokenKind
	start, end int
	// word is what a name says, in lower case, a parameter's name, or the
	// operator; a name without quotes may be a keyword.
	word   string
	quoted bool
}

// scanner cuts SQL text into tokens. It knows as much of SQL as is needed to
// tell code from quotes and comments.
type scanner struct {
	Dialect
	text   string
	at     int
	tokens []token
}

// scan cuts text into tokens that together are the whole of it.
func (d Dialect) scan(text string) ([]token, error) {
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
		s.add(space, s.while(s.at, isBlank))
	case strings.HasPrefix(rest, "--"):
		s.add(space, s.lineEnd())
	case strings.HasPrefix(rest, "/*"):
		return s.comment()
	case c == '\'':
		return s.quotedText(s.at, s.escapes())
	case c == '"' || c == '`':
		return s.quotedName(c)
	case c == '[' && s.brackets:
		return s.quotedName(']')
	case c == '$' && s.dollarBodies && s.dollarTag() != "":
		return s.dollarBody()
	case isDigit(c):
		s.add(literal, s.while(s.at, isNumberByte))
	case isNameStart(c):
		s.add(name, s.while(s.at, isNameByte))
	default:
		s.sign(c, rest)
	}
	return nil
}

// sign takes operators and placeholders.
func (s *scanner) sign(c byte, rest string) {
	switch {
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "||"), strings.HasPrefix(rest, ":="):
		s.add(operator, s.at+2)
	case c == ':' && len(rest) > 1 && isNameStart(rest[1]):
		s.add(param, s.while(s.at+1, isNameByte))
	case strings.IndexByte(s.markers, c) >= 0 && s.isPlaceholder(c, rest):
		s.add(foreign, s.while(s.at+1, isNameByte))
	default:
		s.add(operator, s.at+1)
	}
}

func (s *scanner) isPlaceholder(c byte, rest string) bool {
	return c == '?' || len(rest) > 1 && isNameByte(rest[1])
}

func (s *scanner) add(k tokenKind, end int) {
	t := token{kind: k, start: s.at, end: end}
	if k == name || k == operator {
		t.word = strings.ToLower(s.text[s.at:end])
	}
	if k == param {
		t.word = s.text[s.at+1 : end]
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

func (s *scanner) lineEnd() int {
	if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
		return s.at + i
	}
	return len(s.text)
}

// comment takes /* … */, which nests where dollar quotes are known.
func (s *scanner) comment() error {
	depth, i := 1, s.at+2
	for depth > 0 {
		closing := strings.Index(s.text[i:], "*/")
		if closing < 0 {
			return s.open("a comment")
		}
		if opening := strings.Index(s.text[i:i+closing], "/*"); s.dollarBodies && opening >= 0 {
			depth, i = depth+1, i+opening+2
			continue
		}
		depth, i = depth-1, i+closing+2
	}
	s.add(space, i)
	return nil
}

// escapes reports whether the text that begins here has backslash escapes, as
// PostgreSQL's E'…'.
func (s *scanner) escapes() bool {
	if !s.dollarBodies || len(s.tokens) == 0 {
		return false
	}
	last := s.tokens[len(s.tokens)-1]
	return last.end == s.at && last.word == "e"
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
			s.add(literal, i+1)
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
		s.add(name, i+1)
		last := &s.tokens[len(s.tokens)-1]
		last.word, last.quoted = word, true
		return nil
	}
	return s.open("a quoted name")
}

// dollarTag is the opening $tag$ at this place, empty if there is none.
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
	s.add(literal, s.at+2*len(tag)+i)
	return nil
}

func (s *scanner) open(what string) error {
	return fmt.Errorf("%s that begins at character %d never ends", what, len([]rune(s.text[:s.at]))+1)
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isNameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func isNameByte(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

// isNumberByte is generous: what begins with a digit is no name and no parameter.
func isNumberByte(c byte) bool { return isDigit(c) || c == '.' || isNameStart(c) }
