package cli

import (
	"fmt"
	"time"
)

// counted says how many there are, and that not all are shown.
func counted(shown, all int, what string) string {
	if all != 1 {
		what += "s"
	}
	if shown < all {
		return fmt.Sprintf("%d of %d %s; --limit 0 shows all", shown, all, what)
	}
	return fmt.Sprintf("%d %s", all, what)
}

// verbed is a number of things with its verb.
func verbed(n int, thing, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", thing, one)
	}
	return fmt.Sprintf("%d %ss %s", n, thing, many)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}

// maybeMoment is a time without seconds, or a dash.
func maybeMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

func maybeNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// base64Named marks what is no text.
func base64Named(encoded string) string {
	if encoded == "" {
		return ""
	}
	return "base64:" + encoded
}
