package policy

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// validator compiles the published JSON Schema, which must be valid in draft 2020-12.
func validator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertVocabs()
	if err := c.AddResource("policy.json", text); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func against(t *testing.T, s *jsonschema.Schema, policy string) error {
	t.Helper()
	var v any
	if err := yaml.Load([]byte(policy), &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func TestTheSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	s := validator(t)
	for _, c := range acceptedPolicies() {
		t.Run(c.name, func(t *testing.T) {
			if err := against(t, s, c.policy()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheSchemaAcceptsTheExamples(t *testing.T) {
	s := validator(t)
	for _, name := range examples(t) {
		if err := against(t, s, read(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// examples returns the policy files of the repository's examples.
func examples(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../../../examples/*/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatalf("examples: %v, %v", all, err)
	}
	return all
}

func TestTheSchemaRefusesFaultsOfShapeAndValue(t *testing.T) {
	s := validator(t)
	for _, c := range refusedPolicies() {
		if !c.shape {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if err := against(t, s, c.policy()); err == nil {
				t.Errorf("the schema accepts:\n%s", c.policy())
			}
		})
	}
}

func TestTheSchemaTellsOfEveryKey(t *testing.T) {
	text := string(JSONSchema())
	for _, want := range []string{`"dead_letter"`, `"postgres"`, `"on_bad_identity"`, `"default": "30s"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in it", want)
		}
	}
}
