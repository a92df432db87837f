package messages

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
)

// newLines returns a scanner whose lines can be as long as the longest id.
func newLines(in io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2*semel.MaxID)
	return lines
}

func printErased(c *command.CLI, all []operate.ErasureReport, e *eraseFlags, unreached []string) error {
	if c.JSON {
		return c.WriteJSON(struct {
			DryRun    bool                    `json:"dry_run"`
			Stores    []operate.ErasureReport `json:"stores"`
			Unreached []string                `json:"unreached"`
		}{e.dryRun, all, unreached})
	}
	type view = operate.ErasureReport
	err := command.PrintTable(c, &e.Listing, all, output.Fixed(
		output.Flexible("STORE", func(v view) string { return v.Store }),
		output.Number("IDENTITIES", func(v view) int64 { return v.Identities }),
		output.Number("INBOX", func(v view) int64 { return v.Inbox }),
		output.Number("RESULTS", func(v view) int64 { return v.Results }),
		output.Number("KEYS", func(v view) int64 { return v.Keys }),
		output.Number("DISCARDED", func(v view) int64 { return v.Discarded }).If(e.discard),
		output.Number("LEFT", func(v view) int64 { return v.Left }),
	))
	if err != nil {
		return err
	}
	if err := printLeft(c, all, e); err != nil {
		return err
	}
	if e.dryRun {
		fmt.Fprintln(c.Err, "nothing was erased: this was a dry run")
	}
	fmt.Fprintln(c.Err, "not reached:")
	for _, line := range unreached {
		c.Remark("  %s", line)
	}
	return nil
}

// leftRow is a row that could not be erased, with its store.
type leftRow struct {
	store string
	operate.LeftOfErasure
}

func printLeft(c *command.CLI, all []operate.ErasureReport, e *eraseFlags) error {
	var rows []leftRow
	count := leftOf(all)
	for _, r := range all {
		for _, l := range r.List {
			rows = append(rows, leftRow{r.Store, l})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	err := command.PrintTable(c, &e.Listing, rows, output.Fixed(
		output.Number("ROW", func(v leftRow) int64 { return v.Row }),
		output.Text("STORE", func(v leftRow) string { return v.store }).IfVaried(),
		output.Flexible("CONSUMER", func(v leftRow) string { return v.Consumer }),
		output.Flexible("ID", func(v leftRow) string { return v.ID }),
		output.Text("STATE", func(v leftRow) string { return cmp.Or(string(v.State), "-") }),
		output.Text("WHY", func(v leftRow) string { return string(v.Why) }),
	))
	if int64(len(rows)) < count {
		fmt.Fprintln(c.Err, output.Counted(len(rows), int(count), "row"))
	}
	for _, r := range rows {
		if r.Why == admin.ErasureUnfinished && !e.discard {
			c.Remark("unfinished messages may still be processed; --discard discards and erases them")
			break
		}
	}
	return err
}

// placesNotErased lists places outside the stores that may still contain erased data, such as topics
// and files of the policy.
func placesNotErased(p *policy.Policy, stores []*assembly.Store) (lines []string) {
	var topics []string
	for _, c := range p.Consumers {
		if c.DeadLetter != nil {
			topics = append(topics, "topic "+c.DeadLetter.Topic+", where consumer "+c.Name+" sends dead letters")
		}
	}
	for _, s := range p.Sources {
		switch {
		case s.File != nil && s.File.Path != shape.Stdin:
			topics = append(topics, "file "+s.File.Path+" of source "+s.Name)
		case s.Kafka != nil:
			topics = append(topics, "the topics of source "+s.Name+", and what other systems have of them")
		}
	}
	for _, line := range sortedUnique(topics) {
		lines = append(lines, legible.Printable(line))
	}
	if len(p.Consumers) == 0 {
		lines = append(lines, "topics and files that messages came from, and topics of dead letters")
	}
	for _, s := range p.Stores {
		if s.Redis != nil {
			lines = append(lines, "store "+s.Name+": what Redis keeps of leased keys, until their time is over")
		}
	}
	lines = append(lines, "your own tables: what handlers wrote", "the reasons in the audit trail, which never changes")
	return append(lines, databaseRemains(stores)...)
}

// databaseRemains describes what the databases themselves may still contain of erased rows.
func databaseRemains(stores []*assembly.Store) (lines []string) {
	kinds := map[bool]string{
		true:  "PostgreSQL's old versions of rows, until VACUUM (--vacuum), its log (WAL), replicas that lag, and backups",
		false: "what SQLite left behind in its file when rows moved earlier, until VACUUM (--vacuum), and backups",
	}
	for _, s := range stores {
		if line, there := kinds[s.OnServer()]; there {
			lines = append(lines, line)
			delete(kinds, s.OnServer())
		}
	}
	return append(lines, "fingerprints, by which a content that can be guessed is recognised")
}
