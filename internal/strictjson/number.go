package strictjson

import (
	"bytes"
	"strconv"
)

// maxExponentDigits is the maximum number of digits of an exponent, so that exponents fit into an int64. JSON
// has no limit. A number with a longer exponent is rejected and not rounded.
const maxExponentDigits = 17

// maxAddedZeros is the maximum number of zeros that AppendDecimal adds to write a number without an exponent.
const maxAddedZeros = 20

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// plainInteger is the value of node.extra for a number whose text is already its exact decimal (see AppendDecimal).
const plainInteger = 1

// parseNumber parses a number by the grammar of RFC 8259, section 6.
func (p *Parser) parseNumber(start int) (int, *Error) {
	source, first := p.source, start
	if source[start] == '-' {
		first++
	}
	end := digits(source, first)
	if end == first || (source[first] == '0' && end > first+1) {
		return start, &Error{start, "a malformed number"}
	}
	if end == len(source) || (source[end] != '.' && source[end]|0x20 != 'e') {
		n := p.add(start, end)
		if end-start <= maxAddedZeros && (first == start || source[first] != '0') {
			n.extra = plainInteger
		}
		return end, nil
	}
	return p.fraction(start, end)
}

// fraction parses the part of a number after its integer part.
func (p *Parser) fraction(start, end int) (int, *Error) {
	if p.source[end] == '.' {
		point := end
		if end = digits(p.source, point+1); end == point+1 {
			return start, &Error{start, "a malformed number"}
		}
	}
	end, fault := p.exponent(start, end)
	if fault == nil {
		p.add(start, end)
	}
	return end, fault
}

// exponent returns the end of the exponent that begins at i, or i if no exponent begins there.
func (p *Parser) exponent(start, i int) (int, *Error) {
	if i == len(p.source) || p.source[i]|0x20 != 'e' {
		return i, nil
	}
	first := i + 1
	if first < len(p.source) && (p.source[first] == '+' || p.source[first] == '-') {
		first++
	}
	end := digits(p.source, first)
	if end == first {
		return start, &Error{start, "a malformed number"}
	}
	if len(bytes.TrimLeft(p.source[first:end], "0")) > maxExponentDigits {
		return start, &Error{start, "a number whose exponent has more than 17 digits"}
	}
	return end, nil
}

// digits returns the end of the digits that begin at i.
func digits(source []byte, i int) int {
	for i < len(source) && isDigit(source[i]) {
		i++
	}
	return i
}

// AppendDecimal appends the exact decimal of a JSON number. All ways to write a number give the same text: 1.0, 1 and
// 1e0 give "1"; -0 gives "0"; 15e-1 gives "1.5". If more than 20 zeros would be needed, the text has an exponent:
// 1e400000 gives "1e400000". The number must be valid JSON that Parse accepts.
func AppendDecimal(dst, number []byte) []byte {
	if isDecimal(number) {
		return append(dst, number...)
	}
	unsigned := number
	if number[0] == '-' {
		unsigned = number[1:]
	}
	before := len(dst)
	dst, exponent := appendDigits(dst, unsigned)
	work := len(dst)
	digits := bytes.TrimLeft(dst[before:], "0")
	trimmed := bytes.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(trimmed))
	if len(trimmed) > 0 && number[0] == '-' {
		dst = append(dst, '-')
	}
	dst = appendScaled(dst, trimmed, exponent)
	return dst[:before+copy(dst[before:], dst[work:])] // remove the digits that were only needed for the computation
}

// appendScaled appends a number that is given by its digits and an exponent: the digits, multiplied by ten to the power
// of the exponent. The digits have no zeros at the beginning or end.
func appendScaled(dst, digits []byte, exponent int64) []byte {
	point := int64(len(digits)) + exponent
	switch {
	case len(digits) == 0:
		return append(dst, '0')
	case exponent >= 0 && exponent <= maxAddedZeros:
		return appendZeros(append(dst, digits...), exponent)
	case exponent < 0 && point > 0:
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	case exponent < 0 && point >= -maxAddedZeros:
		return append(appendZeros(append(dst, "0."...), -point), digits...)
	}
	return strconv.AppendInt(append(append(dst, digits...), 'e'), exponent, 10)
}

// isDecimal reports whether the text of a number is already its exact decimal: the number is short, is not a negative
// zero, and has no exponent and no trailing zero in its fraction.
func isDecimal(number []byte) bool {
	point := false
	for _, c := range number {
		switch {
		case isDigit(c) || (c == '-' && number[1] != '0'):
		case c == '.':
			point = true
		default:
			return false
		}
	}
	return len(number) <= maxAddedZeros && !(point && number[len(number)-1] == '0')
}

// appendDigits appends all digits of a number without sign, and returns the exponent: the number is equal to the
// digits, multiplied by ten to the power of the exponent.
func appendDigits(dst, number []byte) (digits []byte, exponent int64) {
	for i, c := range number {
		if c|0x20 == 'e' {
			exponent = exponentOf(number[i+1:])
			number = number[:i]
			break
		}
	}
	point := bytes.IndexByte(number, '.')
	if point < 0 {
		return append(dst, number...), exponent
	}
	dst = append(append(dst, number[:point]...), number[point+1:]...)
	return dst, exponent - int64(len(number)-point-1)
}

func exponentOf(text []byte) (exponent int64) {
	for _, c := range text {
		if isDigit(c) {
			exponent = 10*exponent + int64(c-'0')
		}
	}
	if text[0] == '-' {
		return -exponent
	}
	return exponent
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
