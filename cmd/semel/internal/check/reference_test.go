package check

import (
	"fmt"
	"regexp"
	"strings"
)

// Reference returns the text of docs/check.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The questions of a design review

Made from the table of package check; ` + "`go test ./cmd/semel/internal/check -update`" + ` writes it.

` + "```sh" + `
semel check --config semel.yaml              # all consumers of the policy
semel check --consumer billing --json
semel check --explain 13
semel check --deep                           # compares all inbox rows with their markers
semel check --deep --consumer billing --from 120000
` + "```" + `

For operators and reviewers. ` + "`semel check`" + ` answers these questions about each consumer of a policy, from the policy, its database and its broker, and changes nothing. Each answer is **pass**, **fail** with the remedy, **cannot know** with the reason, or **does not apply**, and has its evidence. ` + "`--explain NUMBER`" + ` prints why a question matters. If a database or a broker is down, the command answers fewer questions and reports what it could not read, after ` + "`--timeout`" + ` (15 seconds).

` + "`--deep`" + ` compares all inbox rows with the records of the same commits: a row with its marker and the version of its stream, and an intent with the marker of its message. It prints the last row that it read; ` + "`--from ROW`" + ` continues after that row.

Exit code 4: at least one question has the answer fail. Exit code 0: no question has; answers **cannot know** do not count. The number of a question never changes.

## The design

`)
	write := func(all []Question) {
		b.WriteString("| number | question | when it fails |\n| --- | --- | --- |\n")
		for _, q := range all {
			fmt.Fprintf(&b, "| %d | %s | %s |\n", q.Number, q.Asks, strings.ReplaceAll(verdict(q.Explain), "|", "\\|"))
		}
	}
	write(design())
	b.WriteString("\n## The operation\n\n")
	write(operation())
	return b.String()
}

var sentence = regexp.MustCompile(`.*?\.(?: |$)`)

// verdict returns the sentences of an explanation that say when the answer is pass, fail or cannot know.
func verdict(explain string) string {
	var kept []string
	for _, s := range sentence.FindAllString(explain, -1) {
		if regexp.MustCompile(`^(Fails|Passes|Cannot|Semel always)|never fails`).MatchString(s) {
			kept = append(kept, strings.TrimSpace(s))
		}
	}
	return strings.Join(kept, " ")
}
