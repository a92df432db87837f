package output

import (
	"fmt"
	"time"
)

// Counted returns a count such as "3 rows", and says so if not all are shown.
func Counted(shown, all int, what string) string {
	if all != 1 {
		what += "s"
	}
	if shown < all {
		return fmt.Sprintf("%d of %d %s; --limit 0 shows all", shown, all, what)
	}
	return fmt.Sprintf("%d %s", all, what)
}

// WithVerb returns a number of things with a verb, such as "2 rows wait".
func WithVerb(n int, thing, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", thing, one)
	}
	return fmt.Sprintf("%d %ss %s", n, thing, many)
}

// Moment formats a time in UTC; the zero time is a dash.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}

// Age formats the time from one moment to another in its largest unit, rounded down: "12m". It is a dash if
// a moment is unknown, and "0s" if to is earlier.
func Age(from, to time.Time) string {
	const day = 24 * time.Hour
	switch d := max(0, to.Sub(from)); {
	case from.IsZero() || to.IsZero():
		return "-"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}

// MaybeMoment formats a time in UTC without seconds; nil is a dash.
func MaybeMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// MaybeNumber formats a number; nil is a dash.
func MaybeNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// Base64Named adds the prefix "base64:" to an encoded value, unless it is empty.
func Base64Named(encoded string) string {
	if encoded == "" {
		return ""
	}
	return "base64:" + encoded
}
