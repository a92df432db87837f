package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

const (
	docs     = "../../../../docs/reference/policy/README.md"
	madeFrom = "-update -->\n"
)

func TestTheReferenceInTheDocsIsCurrent(t *testing.T) {
	written, made, found := strings.Cut(read(t, docs), madeFrom)
	if !found {
		t.Fatalf("%s has no line that ends in %q", docs, madeFrom)
	}
	if made == Reference() {
		return
	}
	if !*update {
		t.Fatalf("%s is not current; go test ./cmd/semel/internal/policy -update writes it", docs)
	}
	if err := os.WriteFile(docs, []byte(written+madeFrom+Reference()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheTableOfEffectsInTheDocsIsTheOneThatPoliciesAreJudgedBy(t *testing.T) {
	const begins, ends = "from the table that policies are judged by -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(read(t, docs), begins)
	table, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		t.Fatalf("%s has no table of effects between %q and %q", docs, begins, ends)
	}
	if table == EffectTable() {
		return
	}
	if !*update {
		t.Fatalf("%s is not current; go test ./cmd/semel/internal/policy -update writes it", docs)
	}
	if err := os.WriteFile(docs, []byte(before+begins+EffectTable()+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestThePoliciesInTheDocsHaveNoFaults(t *testing.T) {
	env := func(name string) (string, bool) {
		values := map[string]string{"DATABASE_URL": "postgres://shop@db/shop", "KAFKA_BROKERS": "kafka:9092"}
		v, ok := values[name]
		return v, ok
	}
	for _, name := range []string{docs, "../../../../docs/guides/kafka.md", "../../../../docs/operate/dead-letters.md", "../../../../README.md"} {
		_, text, found := strings.Cut(read(t, name), "```yaml\n")
		text, _, _ = strings.Cut(text, "```")
		p, faults := Parse("docs.yaml", []byte(text), env)
		if !found || len(faults) > 0 || len(p.Warnings) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func TestEveryKeyHasATextAndAKind(t *testing.T) {
	seen := 0
	var visit func(path string, all []shape.Meta)
	visit = func(path string, all []shape.Meta) {
		for _, m := range all {
			seen++
			if m.Doc == "" || !strings.HasSuffix(m.Doc, ".") || m.Later != (m.Shape == nil) {
				t.Errorf("%s.%s: %+v", path, m.Name, m)
			}
			if m.Shape != nil {
				visit(path+"."+m.Name, m.Shape.Keys())
			}
		}
	}
	visit("", rootShape().Keys())
	if seen < 80 {
		t.Errorf("%d keys", seen)
	}
}

// Reference is the table of all keys as Markdown, for docs/reference/policy/README.md.
func Reference() string {
	var r referenceText
	r.keys("", rootShape().Keys())
	r.b.WriteString("\n### Known and not yet available\n\n")
	r.b.WriteString("A policy with one of these is refused with exit code 3, never read as if it were not there.\n\n")
	r.b.WriteString("| key | what it will be |\n|---|---|\n")
	r.b.WriteString(r.later.String())
	return r.b.String()
}

type referenceText struct {
	b, later strings.Builder
}

// keys writes the table of one mapping, and then those below it.
func (r *referenceText) keys(path string, all []shape.Meta) {
	r.table(path, all)
	for _, m := range all {
		at := join(path, m.Name)
		switch {
		case m.Later:
			fmt.Fprintf(&r.later, "| `%s` | %s |\n", at, m.Doc)
			continue
		case len(m.Shape.Keys()) > 0:
			r.keys(at, m.Shape.Keys())
		}
	}
}

func (r *referenceText) table(path string, all []shape.Meta) {
	if len(all) == 1 && strings.ToUpper(all[0].Name) == all[0].Name {
		return // only names that the user chooses
	}
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(&r.b, "\n### %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	for _, m := range all {
		if !m.Later {
			fmt.Fprintf(&r.b, "| `%s` | %s | %s | %s |\n", m.Name, m.Shape.Words(), absence(m), m.Doc)
		}
	}
}

func absence(m shape.Meta) string {
	switch {
	case m.Required:
		return "required"
	case m.Def != "":
		return "`" + m.Def + "`"
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// EffectTable is the table of kinds as Markdown, for docs/reference/policy/README.md.
func EffectTable() string {
	var b strings.Builder
	b.WriteString("| `kind` | what it is |")
	for _, g := range guards() {
		fmt.Fprintf(&b, " %s |", g)
	}
	b.WriteString(" `retention` |\n|---|---|" + strings.Repeat("---|", len(guards())) + "---|\n")
	for _, k := range effectKinds() {
		fmt.Fprintf(&b, "| `%s` | %s |", k.kind, k.is)
		for _, g := range guards() {
			fmt.Fprintf(&b, " %s |", k.offers(g))
		}
		fmt.Fprintf(&b, " %s |\n", map[bool]string{true: "must be written", false: ""}[k.stated])
	}
	return b.String()
}

func guards() []guard { return []guard{byMarker, byBusinessKey, byNature, byLease, byAnswer} }

func (k effectKind) offers(g guard) string {
	switch {
	case k.refused[g] != "":
		return "refused: " + k.refused[g]
	}
	return "yes"
}
