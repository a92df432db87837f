package strictjson

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// parseString parses the string whose opening quote is at start, and returns the end of the string.
func (p *Parser) parseString(start int) (int, *Error) {
	i := skipWords(p.source, start+1)
	if i < len(p.source) && p.source[i] == '"' {
		p.add(start, i+1)
		return i + 1, nil
	}
	return p.anyString(start, i)
}

// skipWords skips words (eight bytes) without special bytes, and returns the index of the first special byte. If no
// word has a special byte, skipWords returns the index of the last bytes, which are fewer than a word.
func skipWords(source []byte, i int) int {
	for len(source)-i >= 8 {
		if found := special(binary.LittleEndian.Uint64(source[i:])); found != 0 {
			return i + firstMarked(found)
		}
		i += 8
	}
	return i
}

// anyString parses the string whose opening quote is at start. The bytes before i are parsed already.
func (p *Parser) anyString(start, i int) (int, *Error) {
	i, fault := p.skipPlain(i)
	if fault != nil {
		return i, fault
	}
	if p.source[i] == '"' {
		p.add(start, i+1)
		return i + 1, nil
	}
	return p.withEscapes(start, i)
}

// skipPlain returns the index of the closing quote or the next backslash.
func (p *Parser) skipPlain(i int) (int, *Error) {
	source := p.source
	for {
		if i = skipWords(source, i); len(source)-i < 8 {
			i += firstMarked(special(wordAt(source, i)))
		}
		if i >= len(source) {
			return i, &Error{len(source), "the text ends inside a string"}
		}
		switch c := source[i]; {
		case c == '"' || c == '\\':
			return i, nil
		case c < ' ':
			return i, &Error{i, "a control character in a string; it must be escaped"}
		case c >= utf8.RuneSelf:
			var fault *Error
			if i, fault = p.runes(i); fault != nil {
				return i, fault
			}
		}
	}
}

// runes skips characters that are not ASCII.
func (p *Parser) runes(i int) (int, *Error) {
	for i < len(p.source) && p.source[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(p.source[i:])
		if r == utf8.RuneError && size == 1 {
			return i, &Error{i, "invalid UTF-8"}
		}
		i += size
	}
	return i, nil
}

// withEscapes parses a string from its first backslash, and stores the decoded text.
func (p *Parser) withEscapes(start, at int) (int, *Error) {
	d := &p.document
	begin, from := len(d.decodedText), start+1
	for {
		d.decodedText = append(d.decodedText, p.source[from:at]...)
		if p.source[at] == '"' {
			break
		}
		text, length, problem := appendEscape(d.decodedText, p.source[at:])
		switch {
		case problem != "":
			return at, &Error{at, problem}
		case length == 0:
			return at, &Error{len(p.source), "the text ends inside a string"}
		}
		d.decodedText, from = text, at+length
		var fault *Error
		if at, fault = p.skipPlain(from); fault != nil {
			return at, fault
		}
	}
	n := p.add(start, at+1)
	n.extra, n.next = uint32(begin), uint32(len(d.decodedText))
	return at + 1, nil
}

// appendDecoded appends the decoded text of a valid string. The parameter source is the text between the quotes.
func appendDecoded(dst, source []byte) []byte {
	for {
		i := bytes.IndexByte(source, '\\')
		if i < 0 {
			return append(dst, source...)
		}
		decoded, length, _ := appendEscape(append(dst, source[:i]...), source[i:])
		if length == 0 { // the text is not strict JSON; see Find
			return decoded
		}
		dst, source = decoded, source[i+length:]
	}
}

// appendEscape appends the character that the escape at the start of source represents, and returns the length of the
// escape. If the escape is invalid, the length is 0 and the result problem describes the fault. If the text ends within
// the escape, the result problem is "".
func appendEscape(dst, source []byte) (text []byte, length int, problem string) {
	if len(source) < 2 {
		return dst, 0, ""
	}
	c := source[1]
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
		return appendUnicode(dst, source)
	default:
		return dst, 0, "an unknown escape"
	}
	return append(dst, c), 2, ""
}

// appendUnicode decodes an escape \uXXXX, or two escapes that form a surrogate pair.
func appendUnicode(dst, source []byte) (text []byte, length int, problem string) {
	r, ok := hex4(source)
	if !ok {
		return dst, 0, "four hexadecimal digits must follow \\u"
	}
	length = 6
	if utf16.IsSurrogate(r) {
		second, _ := hex4(source[6:])
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			return dst, 0, "a lone surrogate"
		}
		length = 12
	}
	return utf8.AppendRune(dst, r), length, ""
}

// hex4 decodes the \uXXXX at the start of source.
func hex4(source []byte) (rune, bool) {
	if len(source) < 6 || source[0] != '\\' || source[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range source[2:6] {
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

// textOf returns the text of string node i.
func (d *Document) textOf(i uint32) []byte {
	n := &d.nodes[i]
	if n.next != 0 {
		return d.decodedText[n.extra:n.next]
	}
	return d.source[n.start+1 : n.end-1]
}
