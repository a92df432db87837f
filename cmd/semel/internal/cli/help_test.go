package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shellWords matches the words of an example's command line.
var shellWords = regexp.MustCompile(`'[^']*'|[^\s']+`)

func TestEveryHelpHasExamplesThatAreRight(t *testing.T) {
	root := newRoot(&command.CLI{})
	used := map[string]bool{}
	walk(root, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Hidden || strings.HasPrefix(path, "semel completion") || path == "semel help" {
			return
		}
		used[path] = true
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("the help of %q has no example or no sentence", path)
		}
		for _, line := range examples[path] {
			checkExample(t, path, line)
		}
	})
	for path := range examples {
		if !used[path] {
			t.Errorf("there are examples of %q, which is no command", path)
		}
	}
}

// checkExample checks that an example uses existing commands, flags and arguments.
func checkExample(t *testing.T, path, line string) {
	t.Helper()
	var args []string
	for _, w := range shellWords.FindAllString(line, -1) {
		if !strings.Contains(w, ">") {
			args = append(args, strings.Trim(w, "'"))
		}
	}
	cmd, rest, err := newRoot(&command.CLI{}).Find(args[1:])
	if err != nil || !strings.HasPrefix(cmd.CommandPath(), path) {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

func TestAWordThatIsNoCommandIsAnsweredWithTheOneThatWasMeant(t *testing.T) {
	for line, want := range map[string]string{
		"rnu":              `semel: unknown command "rnu" for "semel"; did you mean run?`,
		"mesages":          `semel: unknown command "mesages" for "semel"; did you mean messages?`,
		"messages lss":     `semel: unknown command "lss" for "semel messages"; did you mean ls?`,
		"messages retyr 1": `semel: unknown command "retyr" for "semel messages"; did you mean retry?`,
		"migrate upp":      `semel: unknown command "upp" for "semel migrate"; did you mean up?`,
		"migrate xyzzyx":   `semel: unknown command "xyzzyx" for "semel migrate"; it has grants, print, seed, status, up`,
		"nonsense":         `semel: unknown command "nonsense" for "semel"; it has audit, check, completion, consumers, demo, erase, gaps, generate, health, help, intents, messages, migrate, rebuild, reconcile, replay, retention, run, status, top, version, why`,

		"pause billing --because x": `semel: unknown command "pause" for "semel"; did you mean semel consumers pause?`,
		"alerts":                    `semel: unknown command "alerts" for "semel"; did you mean semel generate alerts?`,
		"parked ls":                 `semel: unknown command "parked" for "semel"; did you mean semel messages?`,
		"retry 17":                  `semel: unknown command "retry" for "semel"; did you mean semel intents retry or semel messages retry?`,
		"up":                        `semel: unknown command "up" for "semel"; did you mean semel migrate up?`,
		"replay switch 4":           `semel: unknown command "switch" for "semel replay"; did you mean semel rebuild switch?`,
		"consumers list":            `semel: unknown command "list" for "semel consumers"; did you mean semel consumers ls?`,
		"messages requeue 17":       `semel: unknown command "requeue" for "semel messages"; did you mean semel messages retry?`,
		"help pause":                `semel: unknown command "pause" for "semel"; did you mean semel consumers pause?`,

		"completion bahs":           `semel: unknown command "bahs" for "semel completion"; did you mean bash?`,
		"completion nonsense":       `semel: unknown command "nonsense" for "semel completion"; it has bash, fish, powershell, zsh`,
		"completion bash extra":     `semel: unknown command "extra" for "semel completion bash"`,
		"completion":                `semel: semel completion needs one of its commands; see 'semel completion --help'`,
		"help rnu":                  `semel: unknown command "rnu" for "semel"; did you mean run?`,
		"help nonsense":             `semel: unknown command "nonsense" for "semel"; it has audit, check, completion, consumers, demo, erase, gaps, generate, health, help, intents, messages, migrate, rebuild, reconcile, replay, retention, run, status, top, version, why`,
		"help messages retyr":       `semel: unknown command "retyr" for "semel messages"; did you mean retry?`,
		"help run fast":             `semel: unknown command "fast" for "semel run"; it has no commands`,
		"help --config x run":       `semel: unknown flag: --config; see 'semel help --help'`,
		"help completion powershel": `semel: unknown command "powershel" for "semel completion"; did you mean powershell?`,
	} {
		code, out, log := invoke(strings.Fields(line)...)
		if first, _, _ := strings.Cut(log, "\n"); code != command.ExitUsage || out != "" || first != want {
			t.Errorf("semel %s: exit code %d, %q\ngot  %s\nwant %s", line, code, out, first, want)
		}
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	_, want, _ := invoke("version")
	if code, got, _ := invoke("--version"); code != command.ExitDone || got != want || !strings.HasPrefix(got, "semel ") {
		t.Errorf("exit code %d, %q, want %q", code, got, want)
	}
}

func TestWithoutACommandThereIsHelp(t *testing.T) {
	if code, out, _ := invoke(); code != command.ExitDone || !strings.Contains(out, "Usage: semel COMMAND") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestEachHelpFitsATerminal(t *testing.T) {
	root := newRoot(&command.CLI{})
	walk(root, func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if len(path) > 0 && path[0] == "completion" {
			return
		}
		text := help(cmd)
		if n := strings.Count(text, "\n"); n > mostLines {
			t.Errorf("the help of %q has %d lines:\n%s", cmd.CommandPath(), n, text)
		}
		if cmd == root {
			return
		}
		flags := 0
		own, _ := explainedFlags(cmd)
		own.VisitAll(func(*pflag.Flag) { flags++ })
		if n := strings.Count(own.FlagUsagesWrapped(command.UsualWidth), "\n"); n != flags {
			t.Errorf("the help of %q has %d lines for %d flags:\n%s", cmd.CommandPath(), n, flags, text)
		}
	})
}

func TestTheHelpOfSemelListsEachCommandInAGroup(t *testing.T) {
	root := newRoot(&command.CLI{})
	var grouped []string
	for _, g := range groups() {
		grouped = append(grouped, g.names...)
	}
	if len(grouped) > 20 {
		t.Errorf("%d commands are listed", len(grouped))
	}
	for _, cmd := range listedCommands(root) {
		if !slices.Contains(grouped, cmd.Name()) {
			t.Errorf("%q is in no group", cmd.Name())
		}
	}
	lines := strings.Split(strings.TrimSpace(help(root)), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "semel completion") {
		t.Errorf("the last line is %q", last)
	}
}

func TestTheEnvironmentHasDefaultsOfFlags(t *testing.T) {
	env := map[string]string{"SEMEL_CONFIG": "other.yaml", "SEMEL_STORE": "shop"}
	c := &command.CLI{Streams: command.Streams{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}}
	for line, want := range map[string][2]string{
		"consumers ls":                                 {"other.yaml", "shop"},
		"consumers ls --config a.yaml --store b":       {"a.yaml", "b"},
		"generate alerts":                              {"other.yaml", ""},
		"audit export --store b":                       {"other.yaml", "b"},
		"consumers positions plan --config semel.yaml": {"semel.yaml", "shop"},
	} {
		cmd, rest, err := newRoot(c).Find(strings.Fields(line))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, flag := range []string{"config", "store"} {
			if f := cmd.Flags().Lookup(flag); f != nil && f.Value.String() != want[i] || f == nil && want[i] != "" {
				t.Errorf("semel %s: --%s is not %q", line, flag, want[i])
			}
		}
	}
}

// The texts of cobra's completion commands cannot be changed.
func TestNoHelpIsWiderThanAUsualTerminal(t *testing.T) {
	walk(newRoot(&command.CLI{}), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.Hidden || len(path) > 0 && path[0] == "completion" {
			return
		}
		_, out, _ := invoke(append([]string{"help"}, path...)...)
		if !strings.Contains(out, "Usage:") {
			t.Errorf("semel help %s: %q", strings.Join(path, " "), out)
		}
		for line := range strings.Lines(out) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > command.UsualWidth {
				t.Errorf("semel help %s has %d columns: %s", strings.Join(path, " "), len(line), line)
			}
		}
	})
}

func TestHelpIsGivenForACommandThatIsThere(t *testing.T) {
	for _, line := range []string{"help", "help run", "help messages retry", "help completion", "help completion bash", "help help"} {
		if code, out, log := invoke(strings.Fields(line)...); code != command.ExitDone || !strings.Contains(out, "Usage:") || log != "" {
			t.Errorf("semel %s: exit code %d, %q:\n%s", line, code, log, out)
		}
	}
}

func TestTheHelpNamesTheVariablesOfItsFlags(t *testing.T) {
	for line, want := range map[string]string{
		"":               "SEMEL_CONFIG sets --config, SEMEL_STORE --store",
		"run":            "variables SEMEL_CONFIG\n",
		"consumers ls":   "variables SEMEL_CONFIG, SEMEL_STORE\n",
		"messages retry": "variables SEMEL_CONFIG, SEMEL_STORE\n",
		"version":        "see semel --help\n",
	} {
		if _, out, _ := invoke(append(strings.Fields(line), "--help")...); !strings.Contains(out, want) {
			t.Errorf("semel %s --help does not say %q:\n%s", line, want, out)
		}
	}
}
