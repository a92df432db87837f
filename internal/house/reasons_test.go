package house

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// watched contains the ranges of traps that must have a test, or a reason why they have no test: deliveries and Kafka,
// marker and effect in one transaction, claims, and attacks. Each entry contains the first and the last trap of a
// range.
var watched = []struct {
	prefix      string
	first, last int
}{{"", 1, 46}, {"", 73, 113}, {"", 122, 137}, {"T", 1, 9}, {"T", 36, 36}, {"T", 39, 39}, {"T", 42, 44}, {"T", 51, 52}, {"T", 10, 12}, {"T", 23, 31}, {"T", 34, 35}, {"T", 38, 38}, {"T", 73, 76}, {"T", 79, 79}, {"T", 81, 104}, {"T", 106, 108}}

var reason = regexp.MustCompile(`(?m)^\* trap (T?\d+)(, in part)?: \S`)

func TestEveryTrapOfWhatIsBuiltHasATestOrAReason(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/internals/numbers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Without a test, because\n")
	if !found {
		t.Fatal("docs/internals/numbers.md has no section about traps without a test")
	}
	inPart := map[string]bool{} // by number; true: tested in part, false: not tested
	for _, m := range reason.FindAllStringSubmatch(section, -1) {
		inPart[m[1]] = m[2] != ""
	}
	tested := map[string]bool{}
	for _, c := range Covers(files(t)) {
		tested[strings.TrimPrefix(c.Number, "trap ")] = true
	}
	for _, r := range watched {
		for n := r.first; n <= r.last; n++ {
			number := fmt.Sprint(r.prefix, n)
			if part, there := inPart[number]; !there && !tested[number] || part && !tested[number] {
				t.Errorf("trap %s has no test and docs/internals/numbers.md gives no reason", number)
			}
			delete(inPart, number)
		}
	}
	for number, part := range inPart {
		t.Errorf("docs/internals/numbers.md gives a reason for trap %s (in part: %t), which is not in the watched ranges", number, part)
	}
	for _, m := range reason.FindAllStringSubmatch(section, -1) {
		if m[2] == "" && tested[m[1]] {
			t.Errorf("trap %s has a test: docs/internals/numbers.md says that it has none", m[1])
		}
	}
}

// If a requirement has a test, at least a part of the requirement is implemented, so docs/internals/numbers.md must
// mark the requirement.
func TestARequirementThatHasATestIsMarkedAsBuilt(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/internals/numbers.md")
	if err != nil {
		t.Fatal(err)
	}
	if faults := unmarked(string(text), Covers(files(t))); len(faults) > 0 {
		t.Errorf("%q have tests, but docs/internals/numbers.md does not mark them **now** or **part**", faults)
	}
	if got := unmarked("* A1 **now** Ids. A2 To come.\n", []Cover{{Number: "A1"}, {Number: "A2"}, {Number: "A3"}, {Number: "law 1"}}); len(got) != 2 {
		t.Errorf("unmarked returned %q, want the two that are not marked", got)
	}
}

var requirement = regexp.MustCompile(`^[A-P]\d+[a-z]?$`)

// unmarked returns the requirements that have a test but are not marked in the text.
func unmarked(text string, covers []Cover) []string {
	var faults []string
	for _, c := range covers {
		if requirement.MatchString(c.Number) && !strings.Contains(text, c.Number+" **now** ") && !strings.Contains(text, c.Number+" **part** ") && !slices.Contains(faults, c.Number) {
			faults = append(faults, c.Number)
		}
	}
	return faults
}
