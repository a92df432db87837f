package policy

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/semel-go/semel/consumer"
)

func TestFaultsOfPackageConsumerUseTheWordsOfAPolicy(t *testing.T) {
	names := []string{`\w+\.\w+\(`, `(Strategy|Lanes|Action|OnParked|OnFiltered|Window)[A-Z]\w+`, `New[A-Z]\w+`}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[consumer.Config]()) {
		names = append(names, field.Name)
	}
	goNames := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	for _, c := range refusedPolicies() {
		_, faults := parse(c)
		for _, f := range faults {
			if name := goNames.FindString(f.Path + " " + f.Reason + " " + f.Remedy); name != "" {
				t.Errorf("%s: %q is a name of Go in: %v", c.name, name, f)
			}
		}
	}
}

func TestAFaultIsALineThatCanBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"a long key":   strings.Repeat("ключ", 100_000) + ": 1\n",
		"a long value": "version: " + strings.Repeat("9", 1_000_000) + "\n",
		"a long name":  "stores: {" + strings.Repeat("a", 1_000_000) + ": {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Parse("semel.yaml", []byte(text), func(string) (string, bool) { return "", false })
			if len(faults) == 0 {
				t.Fatal("no fault")
			}
			for _, f := range faults {
				if line := f.String(); len(line) > 4000 || !utf8.ValidString(line) {
					t.Errorf("%d bytes: %.100q", len(line), line)
				}
			}
		})
	}
}
