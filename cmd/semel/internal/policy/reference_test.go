package policy

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

func TestThePoliciesInTheDocsHaveNoFaults(t *testing.T) {
	env := func(name string) (string, bool) {
		values := map[string]string{"DATABASE_URL": "postgres://shop@db/shop", "KAFKA_BROKERS": "kafka:9092"}
		v, ok := values[name]
		return v, ok
	}
	const yaml, shell = "```yaml\n", "semel.yaml <<'END'\n"
	for name, begin := range map[string]string{"docs/reference/policy/README.md": yaml, "docs/guides/kafka.md": yaml, "docs/operate/dead-letters.md": yaml, "docs/guides/shared-sources.md": yaml, "README.md": shell} {
		_, text, found := strings.Cut(read(t, "../../../../"+name), begin)
		text, _, _ = strings.Cut(text, map[string]string{yaml: "```", shell: "END\n"}[begin])
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
