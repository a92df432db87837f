package strictjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string.
func (p *Parser) str() error {
	start := p.at
	if err := p.plain(start + 1); err != nil {
		return err
	}
	if p.source[p.at] == '"' {
		p.add(String, start, p.at+1)
		return nil
	}
	return p.withEscapes(start)
}

// plain moves to the quote that ends the string or to the next backslash.
func (p *Parser) plain(from int) error {
	i := from
	for i < len(p.source) {
		switch c := p.source[i]; {
		case c == '"' || c == '\\':
			p.at = i
			return nil
		case c < ' ':
			return &Error{i, "a control character in a string; it must be escaped"}
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(p.source[i:])
			if r == utf8.RuneError && size == 1 {
				return &Error{i, "invalid UTF-8"}
			}
			i += size
		}
	}
	return &Error{len(p.source), "the text ends inside a string"}
}

// withEscapes reads on at the first backslash and keeps the decoded text.
func (p *Parser) withEscapes(start int) error {
	begin, from := len(p.document.text), start+1
	for {
		p.document.text = append(p.document.text, p.source[from:p.at]...)
		if p.source[p.at] == '"' {
			break
		}
		if err := p.escape(); err != nil {
			return err
		}
		from = p.at
		if err := p.plain(from); err != nil {
			return err
		}
	}
	n := &p.document.nodes[p.add(String, start, p.at+1)]
	n.escaped, n.extra, n.next = true, uint32(begin), uint32(len(p.document.text))
	return nil
}

// escape decodes the escape at p.at and moves behind it.
func (p *Parser) escape() error {
	if p.at+1 >= len(p.source) {
		return &Error{len(p.source), "the text ends inside a string"}
	}
	c := p.source[p.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicode()
	default:
		return p.fault("an unknown escape")
	}
	p.document.text = append(p.document.text, c)
	p.at += 2
	return nil
}

// unicode decodes \uXXXX, or two of them that form a surrogate pair.
func (p *Parser) unicode() error {
	r, ok := p.hex4(p.at)
	if !ok {
		return p.fault("four hexadecimal digits must follow \\u")
	}
	length := 6
	if utf16.IsSurrogate(r) {
		second, _ := p.hex4(p.at + 6)
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			return p.fault("a lone surrogate")
		}
		length = 12
	}
	p.document.text = utf8.AppendRune(p.document.text, r)
	p.at += length
	return nil
}

// hex4 reads the \uXXXX at i.
func (p *Parser) hex4(i int) (rune, bool) {
	if i+6 > len(p.source) || p.source[i] != '\\' || p.source[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.source[i+2 : i+6] {
		digit, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | digit
	}
	return r, true
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case isDigit(c):
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

// textOf is the text of string node i.
func (d *Document) textOf(i uint32) []byte {
	n := &d.nodes[i]
	if n.escaped {
		return d.text[n.extra:n.next]
	}
	return d.source[n.start+1 : n.end-1]
}
