package spelling

import (
	"strings"
	"testing"
)

func TestTheNearestWordIsFound(t *testing.T) {
	known := []string{"body", "header", "bodies", "id"}
	for _, c := range []struct {
		word string
		most int
		want string
	}{
		{"body", 3, "body"}, {"bdy", 3, "body"}, {"headre", 3, "header"}, {"hdr", 3, ""}, {"heade", 3, "header"},
		{"", 3, ""}, {"bodys", 3, "body"}, {"bodie", 3, "bodies"}, {strings.Repeat("x", 1<<20), 1 << 30, ""}, {"xy", 3, ""}, {"ie", 3, "id"},
	} {
		if got := Nearest(c.word, known, c.most); got != c.want {
			t.Errorf("%.20q within %d is %q, want %q", c.word, c.most, got, c.want)
		}
	}
}
