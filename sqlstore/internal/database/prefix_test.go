package database

import (
	"io/fs"
	"strings"
	"testing"
)

func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]bool{
		"": true, "x_": true, "_": true, "Semel1_": true,
		"1x": false, "a b": false, `a"`: false, "ä": false, "a;drop table x": false, strings.Repeat("a", 33): false,
	} {
		_, err := open(nil, sqliteDialect(statements, methodCode), Options{Prefix: prefix})
		if (err == nil) != want {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

// The cache has texts with a placeholder for the schema. With the name of a schema in place of the placeholder, each
// text must be correct.
func TestCachedTextsFitEachSchema(t *testing.T) {
	d := postgresDialect(statements)
	files, err := fs.Glob(d.Files, "postgres/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, o := range []Options{{Schema: "public", Prefix: "semel_"}, {Schema: "row", Prefix: "semel_"}, {Schema: "Case 1", Prefix: "semel_"}, {Schema: "Case 1", Prefix: "other_"}, {Schema: "schema", Prefix: "name"}} {
		names, err := d.nameReplacer(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(d.Files, file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Text.Exact(names.Replace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second result comes from the cache
				if got, err := d.Exact(names, string(text)); got != want || err != nil {
					t.Errorf("%s of %+v differs: %v", file, o, err)
				}
			}
		}
	}
}
