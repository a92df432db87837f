package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// parseSpan reads "500ms", "1h30m", "30d", "1d12h". A number needs its unit.
func parseSpan(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day) || found && strings.HasPrefix(rest, "-") {
		return 0, false
	}
	whole := time.Duration(n) * day
	if rest == "" {
		return whole, found
	}
	part, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || !endsInUnit(rest) || whole > math.MaxInt64-part {
		return 0, false
	}
	return whole + part, true
}

// endsInUnit refuses the bare "0" that time.ParseDuration accepts.
func endsInUnit(text string) bool {
	last := text[len(text)-1]
	return last < '0' || last > '9'
}

// sizeUnit is a suffix and what it multiplies by.
type sizeUnit struct {
	suffix string
	bytes  int64
}

// sizeUnits are in the order in which suffixes are tried.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
}

// parseSize reads "64MiB", "500kB", "12B". A number needs its unit.
func parseSize(text string) (int64, bool) {
	for _, u := range sizeUnits() {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			return 0, false
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

func showSize(n int64) string {
	for _, u := range sizeUnits() {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}
