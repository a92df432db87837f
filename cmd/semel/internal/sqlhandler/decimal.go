package sqlhandler

import (
	"strconv"
	"strings"
)

// sameDecimal reports whether two JSON numbers are equal, such as 1.50 and 15e-1. A number whose exponent
// does not fit in an int is not equal to any number.
func sameDecimal(a, b string) bool {
	x, xOK := parseDecimal(a)
	y, yOK := parseDecimal(b)
	return xOK && yOK && x == y
}

// decimal is the number 0.DIGITS × 10^exponent. The digits of a decimal neither start nor end with 0. The
// zero value is the number 0.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func parseDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, ok := text, true
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.ParseInt(text[i+1:], 10, 32)
		mantissa, d.exponent, ok = text[:i], int(n), err == nil
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits := strings.TrimLeft(all, "0")
	d.exponent += len(whole) - (len(all) - len(digits))
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}, ok
	}
	return d, ok
}
