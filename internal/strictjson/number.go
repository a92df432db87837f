package strictjson

import (
	"bytes"
	"strconv"
)

// maxExponentDigits keeps exponents in an int64. JSON has no limit; a number
// beyond this one is refused as a whole rather than rounded.
const maxExponentDigits = 17

// maxAddedZeros is how many zeros Decimal adds to write a number in full.
const maxAddedZeros = 20

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads a number by the grammar of RFC 8259, section 6.
func (p *Parser) number() error {
	start, end := p.at, p.at
	if p.source[end] == '-' {
		end++
	}
	whole := p.digits(end)
	if whole == end || (p.source[end] == '0' && whole > end+1) {
		return &Error{start, "a malformed number"}
	}
	end = whole
	if end < len(p.source) && p.source[end] == '.' {
		fraction := p.digits(end + 1)
		if fraction == end+1 {
			return &Error{start, "a malformed number"}
		}
		end = fraction
	}
	end, err := p.exponent(start, end)
	if err != nil {
		return err
	}
	p.add(Number, start, end)
	return nil
}

// exponent returns the end of the exponent at i, i if there is none.
func (p *Parser) exponent(start, i int) (int, error) {
	if i == len(p.source) || p.source[i]|0x20 != 'e' {
		return i, nil
	}
	first := i + 1
	if first < len(p.source) && (p.source[first] == '+' || p.source[first] == '-') {
		first++
	}
	end := p.digits(first)
	if end == first {
		return 0, &Error{start, "a malformed number"}
	}
	if len(bytes.TrimLeft(p.source[first:end], "0")) > maxExponentDigits {
		return 0, &Error{start, "a number whose exponent has more than 17 digits"}
	}
	return end, nil
}

// digits returns the end of the digits at i.
func (p *Parser) digits(i int) int {
	for i < len(p.source) && isDigit(p.source[i]) {
		i++
	}
	return i
}

// AppendDecimal appends the exact decimal of a JSON number, one text for each
// value: 1.0, 1 and 1e0 are "1"; -0 is "0"; 15e-1 is "1.5". A number that would
// need more than 20 zeros to be written in full keeps an exponent: 1e400000
// stays "1e400000". The number must be valid JSON, as Parse accepts it.
func AppendDecimal(dst, number []byte) []byte {
	if isDecimal(number) {
		return append(dst, number...)
	}
	negative := number[0] == '-'
	digits, exponent := significant(bytes.TrimPrefix(number, []byte("-")))
	if len(digits) == 0 {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	point := int64(len(digits)) + exponent
	switch {
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

// isDecimal reports whether a number is its own decimal at first sight: so
// short that no zeros are too many, and without a sign of zero, an exponent or
// a zero at the end of a fraction.
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

// significant splits a number without sign into its digits, without zeros at
// either end, and the power of ten that they are multiplied with.
func significant(number []byte) (digits []byte, exponent int64) {
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		exponent, _ = strconv.ParseInt(string(number[e+1:]), 10, 64)
		number = number[:e]
	}
	if whole, fraction, found := bytes.Cut(number, []byte(".")); found {
		number = append(append(make([]byte, 0, len(number)), whole...), fraction...)
		exponent -= int64(len(fraction))
	}
	number = bytes.TrimLeft(number, "0")
	digits = bytes.TrimRight(number, "0")
	return digits, exponent + int64(len(number)-len(digits))
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
