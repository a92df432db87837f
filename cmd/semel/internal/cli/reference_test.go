package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference/commands.md and the pages below it")

func TestTheReferenceIsOfTheCommands(t *testing.T) {
	const folder = "../../../../docs/reference"
	for name, want := range reference() {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is not of the commands (%v): go test ./cmd/semel/internal/cli -run Reference -update", name, err)
		}
	}
}

// generatedComment is the comment at the start of each generated page.
const generatedComment = "<!-- Written by go test ./cmd/semel/internal/cli -run Reference -update, from the commands. -->\n\n"

// reference returns the generated pages by file name below docs/reference: one page with all commands, and
// one page for each command.
func reference() map[string]string {
	root := newRoot(&command.CLI{})
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString(indexHead)
	for _, g := range groups() {
		fmt.Fprintf(&index, "\n## %s\n\n| command | |\n| --- | --- |\n", g.title)
		for _, cmd := range g.commands(root) {
			name := cmd.Name()
			var page strings.Builder
			fmt.Fprintf(&page, "# semel %s\n\n%sFor everyone who types commands: `semel %s` with all its flags. "+
				"Flags of all commands, variables and exit codes are on [commands](../commands.md).\n", name, generatedComment, name)
			walk(cmd, func(cmd *cobra.Command) {
				if cmd.Hidden || cmd.HasAvailableSubCommands() {
					return
				}
				path := cmd.CommandPath()
				fmt.Fprintf(&index, "| [`%s`](commands/%s.md#%s) | %s |\n", path, name, anchor(path), cell(cmd.Short))
				page.WriteString(entry(cmd))
			})
			pages["commands/"+name+".md"] = page.String()
		}
	}
	pages["commands.md"] = index.String()
	return pages
}

const indexHead = "# Commands\n\n" + generatedComment + `For everyone who types commands. ` + "`semel --help`" + ` lists the commands in these groups, and ` + "`semel COMMAND --help`" + ` shows one of them on a screen. Each command has a page with all its flags.

* **Flags of all commands:** ` + "`--log-level`" + ` (debug, info, warn or error; default info), ` + "`--log-format`" + ` (text or json; default: text on a terminal, json elsewhere), and ` + "`--verbose`" + ` or ` + "`-v`" + ` (on a terminal, log single messages instead of sums).
* **Variables:** ` + "`SEMEL_CONFIG`" + ` is the default of ` + "`--config`" + `, and ` + "`SEMEL_STORE`" + ` that of ` + "`--store`" + `. A flag on the command line replaces its variable.
* **Exit codes:** 0 done; 1 failed; 2 wrong use; 3 the policy is invalid; 4 the command looked for a problem and found it; 130 interrupted.
* **Output:** results on stdout, everything else on stderr. ` + "`-o json`" + ` prints one JSON document.
* **Completion:** ` + "`semel completion --help`" + ` says how your shell completes commands, consumers and stores.
`

// entry returns the section about a command.
func entry(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for part := range strings.SplitSeq(long, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			b.WriteString("```text\n" + part + "\n```\n\n")
			continue
		}
		b.WriteString(strings.ReplaceAll(part, "\n", " ") + "\n\n")
	}
	fmt.Fprintf(&b, "```sh\n%s\n```\n", strings.ReplaceAll(cmd.Example, "  semel", "semel"))
	fmt.Fprintf(&b, "\nUsage: `%s`\n", usageLine(cmd))
	rows := ""
	flags, named := explainedFlags(cmd)
	flags.VisitAll(func(f *pflag.Flag) {
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		rows += fmt.Sprintf("| %s | %s | %s |\n", name, value, cell(f.Usage))
	})
	if rows != "" {
		b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n" + rows)
	}
	for _, by := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(&b, "\nFlags as of [%s](%s.md#%s): `%s`\n", by, strings.Fields(by)[1], anchor(by), strings.Join(named[by], "`, `"))
	}
	return b.String()
}

// anchor returns the anchor of a command's heading.
func anchor(path string) string { return strings.ReplaceAll(path, " ", "-") }

// cell escapes text for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
