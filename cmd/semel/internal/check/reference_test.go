package check

import (
	"fmt"
	"strings"
)

// Reference returns the text of docs/operate/check.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The questions of a design review

Made from the table of package check; ` + "`go test ./cmd/semel/internal/check -update`" + ` writes it.

` + "```sh" + `
semel check --config semel.yaml              # all consumers of the policy
semel check --consumer billing -o json
semel check --explain 13
semel check --deep                           # compares all inbox rows with their markers
semel check --deep --consumer billing --from 120000
semel check --prove                          # tests the handlers with failures
` + "```" + `

For operators and reviewers. ` + "`semel check`" + ` answers these questions about each consumer of a policy, from the policy, its database and its broker, and changes nothing. Each answer is **pass**, **fail** with the remedy, **cannot know** with the reason, or **does not apply**, and has its evidence. ` + "`--explain NUMBER`" + ` prints why a question matters and when the answer is fail. If a database or a broker is down, the command answers fewer questions and reports what it could not read, after ` + "`--timeout`" + ` (15 seconds).

` + "`--deep`" + ` compares all inbox rows with the records of the same commits: a row with its marker and the version of its stream, and an intent with the marker of its message.

` + "`--prove`" + ` tests the handlers instead, as [Test a policy](../guides/testing-policies.md) explains. Questions 4 and 18 are answered from its results.

Exit code 4: at least one question has the answer fail; answers **cannot know** do not count. The number of a question never changes.

## The design

`)
	write := func(all []Question) {
		b.WriteString("| number | question |\n| --- | --- |\n")
		for _, q := range all {
			fmt.Fprintf(&b, "| %d | %s |\n", q.Number, q.Asks)
		}
	}
	write(design())
	b.WriteString("\n## The operation\n\n")
	write(operation())
	return b.String()
}
