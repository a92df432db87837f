package sqlstore

import (
	"strings"
	"testing"
)

func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]bool{
		"": true, "x_": true, "_": true, "Semel1_": true,
		"1x": false, "a b": false, `a"`: false, "ä": false, "a;drop table x": false, strings.Repeat("a", 33): false,
	} {
		_, err := open(nil, sqliteDialect(methodCode), Options{Prefix: prefix})
		if (err == nil) != want {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}
