package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// suggestFor calls a command with args. The function returns the command that Suggest makes of
// words, and the remark below this command.
func suggestFor(t *testing.T, store string, words []string, args ...string) (line, remark string) {
	t.Helper()
	var err bytes.Buffer
	c := &CLI{Streams: Streams{Err: &err}}
	c.target.hasSeveral = store != ""
	root := Group("semel", "the root", c.WithConfig(&cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}}))
	look := &cobra.Command{Use: "status", Run: func(*cobra.Command, []string) { line = c.SuggestIn(store, words...) }}
	StoreFlag(look, new(string))
	root.AddCommand(c.WithConfig(look))
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { c.NoteTyped(cmd) }
	root.SetArgs(append([]string{"status"}, args...))
	if e := root.Execute(); e != nil {
		t.Fatal(e)
	}
	c.ExplainSuggestions()
	return line, err.String()
}

func TestASuggestedCommandCanBeTypedAsItStands(t *testing.T) {
	for name, c := range map[string]struct {
		store, words, args, want string
	}{
		"nothing_was_typed":              {"", "status", "", "semel status"},
		"the_policy":                     {"", "run --consumer a", "--config a.yaml", "semel run --consumer a --config a.yaml"},
		"a_file":                         {"", "status", "--store sqlite:my.db", "semel status --store sqlite:my.db"},
		"a_flag_that_the_command_lacks":  {"", "run", "--store shop", "semel run"},
		"one_of_several_stores":          {"shop", "status", "--config a.yaml", "semel status --config a.yaml --store shop"},
		"the_store_that_the_user_chose":  {"shop", "status", "--store desk", "semel status --store desk"},
		"an_address_without_a_password":  {"", "status", "--store postgres://ann@db/shop", "semel status --store postgres://ann@db/shop"},
		"trap_an_address_with_password":  {"", "status", "--store postgres://ann:secret@db/shop", `semel status --store "$SEMEL_STORE"`},
		"trap_a_password_in_the_query":   {"", "status", "--store postgres://db/shop?password=secret", `semel status --store "$SEMEL_STORE"`},
		"trap_an_address_that_is_broken": {"", "status", "--store postgres://ann:sec%ret@db/shop", `semel status --store "$SEMEL_STORE"`},
	} {
		t.Run(name, func(t *testing.T) {
			line, remark := suggestFor(t, c.store, strings.Fields(c.words), strings.Fields(c.args)...)
			if line != c.want {
				t.Errorf("got %s", line)
			}
			if hidden := strings.Contains(c.want, "SEMEL_STORE"); hidden != strings.Contains(remark, "set and export SEMEL_STORE") {
				t.Errorf("the remark is %q", remark)
			}
		})
	}
}
