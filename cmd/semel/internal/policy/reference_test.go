package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

const (
	docs     = "../../../../docs/policy.md"
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
	for _, name := range []string{docs, "../../../../docs/kafka.md", "../../../../docs/dead-letters.md"} {
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
