package check

import (
	"fmt"
	"strings"
)

// Reference is docs/check.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The questions of a design review

Made from the table of package check; ` + "`go test ./cmd/semel/internal/check -update`" + ` writes it.

` + "```sh" + `
semel check --config semel.yaml              # all consumers of the policy
semel check --consumer billing --json
semel check --explain 13
semel check --deep                           # reads all rows, and compares them with what was written with them
semel check --deep --consumer billing --from 120000
` + "```" + `

` + "`semel check`" + ` answers these questions about each consumer of a policy, from the policy, its database and its broker. Each answer is **pass**, **fail** with what mends it, **cannot know** with the reason, or **does not apply**; evidence stands beside each. Nothing is changed, and each question costs a few statements, which count no further than 10,000 rows. With ` + "`--deep`" + ` all rows of the inbox are compared with what is written in the same commits: a row with its marker and with the version of its stream, an intent with the marker of the message that wrote it; 5,000 in a statement, so that no snapshot is held for longer. What a policy without markers, or without ` + "`version`" + `, left behind is told as well, once the policy has them. It prints up to which row it came, also when it is interrupted, when the database goes away, and when it has found a hundred; ` + "`--from ROW`" + ` goes on behind that row, and finds what one look would have found. A database or a broker that is down, of another version, or readable only in part makes the answers fewer: what cannot be read is told, and no reason to end. Whoever answers nothing is waited for as long as ` + "`--timeout`" + ` says, 15 seconds without it; Kafka's client gives a connection ten more. An invalid policy is refused as everywhere (exit code 3).

Exit code 4: a question is answered with fail. 0: none is; what cannot be known does not count.

A number never changes, and that of a question which is given up is not used again: reviews and scripts may name it.

## The design

`)
	write := func(all []Question) {
		b.WriteString("| number | question | why it is asked, and what fails |\n| --- | --- | --- |\n")
		for _, q := range all {
			fmt.Fprintf(&b, "| %d | %s | %s |\n", q.Number, q.Asks, strings.ReplaceAll(q.Explain, "|", "\\|"))
		}
	}
	write(design())
	b.WriteString("\n## The operation\n\n")
	write(operation())
	return b.String()
}
