package check

import (
	"fmt"
	"strings"
)

// Reference is docs/operate/check.md.
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

` + "`semel check`" + ` answers these questions about each consumer of a policy, from the policy, its database and its broker. Each answer is **pass**, **fail** with the remedy, **cannot know** with the reason, or **does not apply**, and has its evidence. The command changes nothing. Each question costs a few statements, which count at most 10,000 rows. An invalid policy is refused (exit code 3).

If a database or a broker is down, has another version, or is readable only in part, the command answers fewer questions and reports what it could not read. It waits for each of them for ` + "`--timeout`" + `, by default 15 seconds; Kafka's client gives a connection ten more.

` + "`--deep`" + ` compares all inbox rows with the records of the same commits: a row with its marker and the version of its stream, and an intent with the marker of its message. It reads 5,000 rows in a statement, so no snapshot is held for long. It also reports rows from a time when the policy had no markers or no ` + "`version`" + `. It prints the last row that it read, also after an interrupt, after an error of the database, and after a hundred findings; ` + "`--from ROW`" + ` continues after that row.

Exit code 4: at least one question has the answer fail. Exit code 0: no question has; answers **cannot know** do not count.

The number of a question never changes and is never used again, so reviews and scripts may refer to it.

## The design

`)
	write := func(all []Question) {
		b.WriteString("| number | question | reason, and when it fails |\n| --- | --- | --- |\n")
		for _, q := range all {
			fmt.Fprintf(&b, "| %d | %s | %s |\n", q.Number, q.Asks, strings.ReplaceAll(q.Explain, "|", "\\|"))
		}
	}
	write(design())
	b.WriteString("\n## The operation\n\n")
	write(operation())
	return b.String()
}
