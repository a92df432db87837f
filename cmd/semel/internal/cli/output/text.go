package output

import (
	"fmt"
	"time"
)

// Counted returns a count such as "3 rows". If shown is less than all, Counted returns a text such as "2 of 3 rows",
// with a hint how to see all rows.
func Counted(shown, all int, what string) string {
	if all != 1 {
		what += "s"
	}
	if shown < all {
		return fmt.Sprintf("%d of %d %s; --limit 0 shows all", shown, all, what)
	}
	return fmt.Sprintf("%d %s", all, what)
}

// WithVerb returns a count with a verb, such as "2 rows wait". The parameters one and many are the singular
// and the plural of the verb.
func WithVerb(n int, thing, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", thing, one)
	}
	return fmt.Sprintf("%d %ss %s", n, thing, many)
}

// Moment formats a time in UTC. The zero time is formatted as a dash.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}

// Age formats the time between the parameters from and to in its largest unit, rounded down, such as "12m".
// Age returns a dash if one of the times is zero, and "0s" if the parameter to is before the parameter from.
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

// MaybeMoment formats a time in UTC without seconds. nil is formatted as a dash.
func MaybeMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// MaybeNumber formats a number. nil is formatted as a dash.
func MaybeNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// Base64Named returns the encoded value with the prefix "base64:", or "" for an empty value.
func Base64Named(encoded string) string {
	if encoded == "" {
		return ""
	}
	return "base64:" + encoded
}
