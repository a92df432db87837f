package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

func TestWhatIsNoPolicyAtAllHasAPlaceAndARemedy(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "p.yaml:1:1: the file is empty; see docs/reference/policy for what it needs"},
		{"only comments", "# nothing\n", "p.yaml:1:1: the file is empty; see docs/reference/policy for what it needs"},
		{"only an end of document", "---\n...\n", "p.yaml:2:1: nothing stands here; write a mapping with keys of version, stores, sources, audit, listen, recorder, traces, consumers"},
		{"a list", "- version: 1\n", "p.yaml:1:1: a list stands here; write a mapping with keys of version, stores, sources, audit, listen, recorder, traces, consumers"},
		{"several documents", base + "---\nversion: 1\n", "p.yaml:19:1: the file has several documents; keep one document in each file"},
		{"a bracket without end", "version: [1\nstores: 2\n", "p.yaml:2:7: this is not YAML: "},
		{"a quote without end", "version: '1\n", "this is not YAML: "},
		{"a tab", "version: 1\n\tstores: 1\n", "p.yaml:2:1: this is not YAML: "},
		{"bad indentation", "stores:\n  a: 1\n b: 2\n", "p.yaml:3:2: this is not YAML: "},
		{"an unknown alias", "version: *x\n", "p.yaml:1:10: this is not YAML: "},
		{"braces in a brace", "a: {b: ${C}}\n", "put \"${NAME}\" in quotes inside braces"},
		{"a byte that is not UTF-8", "version: 1\nstores: \xff\n", "p.yaml:2:9: this byte is not UTF-8; write the file in UTF-8"},
		{"a NUL", "version: 1\x00", "p.yaml:1:11: control character U+0000 is not allowed; write the file in UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, faults := Parse("p.yaml", []byte(c.text), environment)
			if p != nil || len(faults) == 0 || !strings.Contains(faults[0].String(), c.want) {
				t.Errorf("%v, want %q", faults, c.want)
			}
		})
	}
}

func TestAnAliasOfItselfEnds(t *testing.T) {
	_, faults := Parse("p.yaml", []byte("version: &a [*a]\nstores: &b {x: *b}\n"), environment)
	if len(faults) == 0 {
		t.Error("no fault")
	}
}

func TestABrokenFileNamesItsFault(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "there is no such file",
		dir:                             "cannot be read",
	} {
		p, faults := Load(name, environment)
		if p != nil || len(faults) != 1 || faults[0].Kind != shape.Unreadable || !strings.Contains(faults[0].Reason, want) || faults[0].Remedy == "" {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func TestPathsStartFromThePolicysFolder(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "semel.yaml")
	text := strings.Replace(base, "format: envelope", "format: envelope", 1)
	text = strings.Replace(text, "    sqlite: {path: shop.db}", "    sqlite: {path: data/shop.db}\n    setup: /etc/setup.sql", 1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, faults := Load(name, environment)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	store := p.Store("shop")
	if store.SQLite.Path != filepath.Join(dir, "data", "shop.db") || store.Setup != "/etc/setup.sql" ||
		p.Source("payments").File.Path != filepath.Join(dir, "payments.jsonl") {
		t.Errorf("%+v %+v %+v", store.SQLite, store, p.Source("payments").File)
	}
}

func TestStandardInputIsNoPath(t *testing.T) {
	p, faults := parse(policyCase{edits: []string{"payments.jsonl", `"-"`}})
	if len(faults) > 0 || p.Source("payments").File.Path != shape.Stdin {
		t.Errorf("%v %v", p, faults)
	}
}

func TestALaterFaultFindsItsPlace(t *testing.T) {
	p, faults := parse(policyCase{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for path, want := range map[string]string{
		"stores.shop.sqlite.path":                          "dir/p.yaml:4:20: stores.shop.sqlite.path: no; yes",
		"stores.shop.setup":                                "dir/p.yaml:4:5: stores.shop.setup: no; yes",
		"consumers.billing.handler.sql.statements[0].rows": "dir/p.yaml:18:13: consumers.billing.handler.sql.statements[0].rows: no; yes",
		"": "dir/p.yaml:1:1: no; yes",
	} {
		if got := p.Fault(path, "no", "yes").String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAFaultIsOneLine(t *testing.T) {
	f := shape.Fault{File: "a.yaml", Line: 1, Column: 2, Reason: "two\r\nlines", Kind: shape.Warning}
	if got := f.Error(); got != "a.yaml:1:2: warning: two lines" {
		t.Error(got)
	}
}

func TestTheEnvironmentIsReadIntoValues(t *testing.T) {
	for text, want := range map[string]string{
		"${SECRET}":                  "hunter2",
		"a${SECRET}b${WORKERS}":      "ahunter2b4",
		"${NONE:-x y}":               "x y",
		"a${NONE:-}b":                "ab",
		"${EMPTY:-x}":                "x",
		"a${EMPTY}b":                 "ab",
		"$${SECRET}":                 "${SECRET}",
		"$SECRET $1 {SECRET} $":      "$SECRET $1 {SECRET} $",
		"${SECRET:-never} $${a} ${a": "",
	} {
		p, faults := parse(policyCase{edits: []string{"path: shop.db", "path: '/" + text + "'"}})
		switch {
		case want == "" && len(faults) == 0:
			t.Errorf("%s: no fault", text)
		case want != "" && (p == nil || p.Stores[0].SQLite.Path != "/"+want):
			t.Errorf("%s: %v, want %s", text, faults, want)
		}
	}
}

func TestAnSQLTextThatACommaCutsIsNamed(t *testing.T) {
	sql := "params: {id: id}"
	for name, c := range map[string]struct{ statements, want string }{
		"within_braces": {"- {sql: insert into paid values (:id, 1)}",
			"this key is unknown; within braces a comma ends the value of sql: put a text with commas in quotes, or write it as a block"},
		"within_braces_with_another_key": {"- {sql: insert into paid values (:id, 1, 2), rows: 1}", "within braces a comma ends the value of sql"},
		"within_brackets": {"[insert into paid values (:id, 1)]",
			"the parentheses of this statement do not match; within brackets a comma ends a statement: put SQL with commas in quotes, or write it as a block"},
		"a_misspelled_key":   {"- {sql: delete from paid where id = :id, row: 1}", "this key is unknown; did you mean rows?"},
		"in_quotes":          {`- {sql: "insert into paid values (:id, 1)"}`, ""},
		"in_quoted_list":     {`["insert into paid values (:id, 1)"]`, ""},
		"in_a_list_of_lines": {"- insert into paid values (:id, 1)", ""},
		"a_literal":          {"[insert into paid values (:id || '(')]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			statements := " " + c.statements
			if strings.HasPrefix(c.statements, "- ") {
				statements = "\n          " + c.statements
			}
			text := strings.Replace(commas, "STATEMENTS", sql+"\n        statements:"+statements, 1)
			_, faults := Parse("p.yaml", []byte(text), environment)
			if c.want == "" && len(faults) > 0 || c.want != "" && !strings.Contains(faultLines(faults), c.want) {
				t.Errorf("want %q, got\n%s", c.want, faultLines(faults))
			}
		})
	}
}

// commas is a policy in which the tests fill in the statements.
const commas = `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources: {payments: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  billing:
    from: payments
    store: shop
    identity: {id: id, source: source}
    handler:
      sql:
        STATEMENTS
`
