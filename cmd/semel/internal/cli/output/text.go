package output

import (
	"fmt"
	"time"
)

// Counted says how many there are, and that not all are shown.
func Counted(shown, all int, what string) string {
	if all != 1 {
		what += "s"
	}
	if shown < all {
		return fmt.Sprintf("%d of %d %s; --limit 0 shows all", shown, all, what)
	}
	return fmt.Sprintf("%d %s", all, what)
}

// WithVerb is a number of things with its verb.
func WithVerb(n int, thing, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", thing, one)
	}
	return fmt.Sprintf("%d %ss %s", n, thing, many)
}

// Moment is a time in UTC, or a dash.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}

// MaybeMoment is a time without seconds, or a dash.
func MaybeMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// MaybeNumber is a number, or a dash.
func MaybeNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// Base64Named marks what is no text.
func Base64Named(encoded string) string {
	if encoded == "" {
		return ""
	}
	return "base64:" + encoded
}
