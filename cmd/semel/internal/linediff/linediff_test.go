package linediff

import "testing"

func TestADiffShowsChangesWithContext(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing":      {"a\nb", "a\nb", ""},
		"JSON":         {`{"a":1,"b":2}`, `{"a":1,"b":3}`, "@@ -1,4 +1,4 @@\n {\n   \"a\": 1,\n-  \"b\": 2\n+  \"b\": 3\n }\n"},
		"spaces alone": {`{"a":1}`, `{ "a": 1 }`, ""},
		"far apart":    {"1\nx\nx\nx\nx\nx\nx\nx\nx\n2", "3\nx\nx\nx\nx\nx\nx\nx\nx\n4", "@@ -1,4 +1,4 @@\n-1\n+3\n x\n x\n x\n@@ -7,4 +7,4 @@\n x\n x\n x\n-2\n+4\n"},
		"added":        {"a\nb", "a\nnew\nb", "@@ -1,2 +1,3 @@\n a\n+new\n b\n"},
		"all":          {"a", "b", "@@ -1 +1 @@\n-a\n+b\n"},
	} {
		if have, ok := Payloads([]byte(c.before), []byte(c.after)); !ok || have != c.want {
			t.Errorf("%s: %q, %v; want %q", name, have, ok, c.want)
		}
	}
}

func TestBinaryDataHasNoDiff(t *testing.T) {
	if text, ok := Payloads([]byte("\xff"), []byte("a")); ok {
		t.Errorf("a diff of binary data: %q", text)
	}
}
