package strictjson

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The type refParser is the reference for the parser. The reference is the first version of the parser, which reads
// byte by byte into a tree and has its own canonical form. From the package, refParser uses only Kind, Error and
// MaxDepth. The errors of refParser, their offsets, and its canonical form must never change.

// refValue is a JSON value that the reference parser has parsed.
type refValue struct {
	kind        Kind
	start, end  int
	decodedText []byte
	elements    []*refValue
	// For an object, the fields names and elements have the same length, and are in the order of the text. The field
	// sorted contains the indexes of the names, sorted by name.
	names, sorted []int
	nameTexts     [][]byte
}

// refParser is the reference parser, whose methods panic with an *Error.
type refParser struct {
	source []byte
	at     int
}

func refParse(source []byte) (v *refValue, err *Error) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case *Error:
			v, err = nil, fault
		default:
			panic(fault)
		}
	}()
	p := &refParser{source: source}
	v = p.value(1)
	p.space()
	if p.at < len(source) {
		p.refuse(p.at, "text after the value")
	}
	return v, nil
}

func (p *refParser) refuse(at int, problem string) { panic(&Error{at, problem}) }

func (p *refParser) space() {
	for p.at < len(p.source) && bytes.IndexByte([]byte(" \t\n\r"), p.source[p.at]) >= 0 {
		p.at++
	}
}

// peek skips space and returns the next byte, or 0 at the end.
func (p *refParser) peek() byte {
	p.space()
	if p.at == len(p.source) {
		return 0
	}
	return p.source[p.at]
}

func (p *refParser) value(depth int) *refValue {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		return p.nested(c, depth)
	case c == '"':
		return p.str()
	case c == 't':
		return p.word("true", Bool)
	case c == 'f':
		return p.word("false", Bool)
	case c == 'n':
		return p.word("null", Null)
	case c == '-' || isRefDigit(c):
		return p.number()
	case p.at == len(p.source):
		p.refuse(p.at, "the text ends where a value is expected")
	case bytes.HasPrefix(p.source[p.at:], []byte("\xef\xbb\xbf")):
		p.refuse(p.at, "a byte-order mark")
	}
	p.refuse(p.at, "no value begins here")
	return nil
}

func (p *refParser) word(word string, k Kind) *refValue {
	if !bytes.HasPrefix(p.source[p.at:], []byte(word)) {
		p.refuse(p.at, "no value begins here")
	}
	start := p.at
	p.at += len(word)
	return &refValue{kind: k, start: start, end: p.at}
}

func (p *refParser) nested(opening byte, depth int) *refValue {
	if depth > MaxDepth {
		p.refuse(p.at, "nested deeper than 1000")
	}
	v := &refValue{kind: Array, start: p.at}
	p.at++
	if opening == '{' {
		v.kind = Object
	}
	closing := opening + 2 // true for [ and {, because of their codes in ASCII
	if p.peek() == closing {
		p.at++
	} else {
		p.list(v, closing, depth)
	}
	v.end = p.at
	return v
}

func (p *refParser) list(v *refValue, closing byte, depth int) {
	for c := byte(','); c != closing; p.at++ {
		if v.kind == Object {
			p.name(v)
		}
		v.elements = append(v.elements, p.value(depth+1))
		c = p.peek()
		if c != ',' && c != closing {
			p.refuse(p.at, "neither a comma nor the closing bracket")
		}
	}
	for i := range v.names {
		v.sorted = append(v.sorted, i)
	}
	slices.SortStableFunc(v.sorted, func(a, b int) int { return bytes.Compare(v.nameTexts[a], v.nameTexts[b]) })
	for i := 1; i < len(v.sorted); i++ {
		if bytes.Equal(v.nameTexts[v.sorted[i-1]], v.nameTexts[v.sorted[i]]) {
			p.refuse(v.names[v.sorted[i]], "a repeated member name")
		}
	}
}

func (p *refParser) name(v *refValue) {
	if p.peek() != '"' {
		p.refuse(p.at, "a member name is expected here")
	}
	name := p.str()
	v.names = append(v.names, name.start)
	v.nameTexts = append(v.nameTexts, name.decodedText)
	if p.peek() != ':' {
		p.refuse(p.at, "a colon is expected here")
	}
	p.at++
}

func (p *refParser) str() *refValue {
	v := &refValue{kind: String, start: p.at, decodedText: []byte{}}
	for p.at++; p.at < len(p.source); {
		switch c := p.source[p.at]; {
		case c == '"':
			p.at++
			v.end = p.at
			return v
		case c == '\\':
			v.decodedText = p.escape(v.decodedText)
		case c < ' ':
			p.refuse(p.at, "a control character in a string; it must be escaped")
		default:
			r, size := utf8.DecodeRune(p.source[p.at:])
			if r == utf8.RuneError && size == 1 {
				p.refuse(p.at, "invalid UTF-8")
			}
			v.decodedText = append(v.decodedText, p.source[p.at:p.at+size]...)
			p.at += size
		}
	}
	p.refuse(len(p.source), "the text ends inside a string")
	return nil
}

func (p *refParser) escape(text []byte) []byte {
	if p.at+1 >= len(p.source) {
		p.refuse(len(p.source), "the text ends inside a string")
	}
	c := p.source[p.at+1]
	if c == 'u' {
		return utf8.AppendRune(text, p.unicode())
	}
	const escapes, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := bytes.IndexByte([]byte(escapes), c)
	if i < 0 {
		p.refuse(p.at, "an unknown escape")
	}
	p.at += 2
	return append(text, meanings[i])
}

func (p *refParser) unicode() rune {
	r, ok := p.hex4(p.at)
	if !ok {
		p.refuse(p.at, "four hexadecimal digits must follow \\u")
	}
	length := 6
	if utf16.IsSurrogate(r) {
		second, _ := p.hex4(p.at + 6)
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			p.refuse(p.at, "a lone surrogate")
		}
		length = 12
	}
	p.at += length
	return r
}

// hex4 decodes the \uXXXX at i.
func (p *refParser) hex4(i int) (rune, bool) {
	if i+6 > len(p.source) || p.source[i] != '\\' || p.source[i+1] != 'u' {
		return 0, false
	}
	for _, c := range p.source[i+2 : i+6] {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return 0, false
		}
	}
	r, err := strconv.ParseUint(string(p.source[i+2:i+6]), 16, 16)
	return rune(r), err == nil
}

func isRefDigit(c byte) bool { return '0' <= c && c <= '9' }

// number parses a number by the grammar of RFC 8259, section 6.
func (p *refParser) number() *refValue {
	start, end := p.at, p.at
	if p.source[end] == '-' {
		end++
	}
	whole := p.digits(end)
	malformed := whole == end || (p.source[end] == '0' && whole > end+1)
	end = whole
	if !malformed && end < len(p.source) && p.source[end] == '.' {
		whole = p.digits(end + 1)
		malformed = whole == end+1
		end = whole
	}
	if !malformed && end < len(p.source) && p.source[end]|0x20 == 'e' {
		first := end + 1
		if first < len(p.source) && (p.source[first] == '+' || p.source[first] == '-') {
			first++
		}
		end = p.digits(first)
		malformed = end == first
		if !malformed && len(bytes.TrimLeft(p.source[first:end], "0")) > 17 {
			p.refuse(start, "a number whose exponent has more than 17 digits")
		}
	}
	if malformed {
		p.refuse(start, "a malformed number")
	}
	p.at = end
	return &refValue{kind: Number, start: start, end: end}
}

func (p *refParser) digits(i int) int {
	for i < len(p.source) && isRefDigit(p.source[i]) {
		i++
	}
	return i
}

// refDecimal returns the exact decimal of a number.
func refDecimal(number []byte) []byte {
	sign, unsigned := "", bytes.TrimPrefix(number, []byte("-"))
	if len(unsigned) < len(number) {
		sign = "-"
	}
	exponent := int64(0)
	if e := bytes.IndexAny(unsigned, "eE"); e >= 0 {
		exponent, _ = strconv.ParseInt(string(unsigned[e+1:]), 10, 64)
		unsigned = unsigned[:e]
	}
	whole, fraction, _ := bytes.Cut(unsigned, []byte("."))
	exponent -= int64(len(fraction))
	digits := bytes.TrimLeft(slices.Concat(whole, fraction), "0")
	all := len(digits)
	digits = bytes.TrimRight(digits, "0")
	if len(digits) == 0 {
		return []byte("0")
	}
	exponent += int64(all - len(digits))
	const mostZeros = 20
	zeros := func(n int64) []byte { return bytes.Repeat([]byte("0"), int(n)) }
	switch point := int64(len(digits)) + exponent; {
	case exponent >= 0 && exponent <= mostZeros:
		return slices.Concat([]byte(sign), digits, zeros(exponent))
	case exponent < 0 && point > 0:
		return slices.Concat([]byte(sign), digits[:point], []byte("."), digits[point:])
	case exponent < 0 && point >= -mostZeros:
		return slices.Concat([]byte(sign), []byte("0."), zeros(-point), digits)
	}
	return strconv.AppendInt(slices.Concat([]byte(sign), digits, []byte("e")), exponent, 10)
}

// canonical appends the canonical form of the value.
func (v *refValue) canonical(dst, source []byte) []byte {
	switch v.kind {
	case Number:
		return refTagged(dst, 'd', refDecimal(source[v.start:v.end]))
	case String:
		return refTagged(dst, 's', v.decodedText)
	case Array:
		dst = append(dst, '[')
		for _, element := range v.elements {
			dst = element.canonical(dst, source)
		}
		return append(dst, 'e')
	case Object:
		dst = append(dst, '{')
		for _, i := range v.sorted {
			dst = v.elements[i].canonical(refTagged(dst, 's', v.nameTexts[i]), source)
		}
		return append(dst, 'e')
	}
	return append(dst, source[v.start])
}

func refTagged(dst []byte, tag byte, text []byte) []byte {
	return append(binary.AppendUvarint(append(dst, tag), uint64(len(text))), text...)
}

// lookup follows names and indexes, as a pointer follows its tokens.
func (v *refValue) lookup(names []string) *refValue {
	for _, name := range names {
		i := -1
		switch v.kind {
		case Object:
			i = slices.IndexFunc(v.nameTexts, func(text []byte) bool { return string(text) == name })
		case Array:
			for k := range v.elements {
				if strconv.Itoa(k) == name {
					i = k
				}
			}
		}
		if i < 0 {
			return nil
		}
		v = v.elements[i]
	}
	return v
}
