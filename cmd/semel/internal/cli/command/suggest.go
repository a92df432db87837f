package command

import (
	"net/url"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// storeVariable stands for the address of a database that is not printed, because the address contains a
// password.
const storeVariable = "$SEMEL_STORE"

// targetFlags has the flags with which the user chose a policy or a database. Values from environment
// variables are not included, because the variables also apply to the next command.
type targetFlags struct {
	config, store []string
	// hasSeveral means that the policy has several databases. hidesPassword means that storeVariable
	// was printed in place of an address with a password.
	hasSeveral, hidesPassword bool
	root                      *cobra.Command
}

// NoteTyped stores, for Suggest, the flags of the command that the user typed.
func (c *CLI) NoteTyped(cmd *cobra.Command) {
	c.target.root = cmd.Root()
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		c.target.config = []string{"--config", f.Value.String()}
	}
	if f := cmd.Flags().Lookup("store"); f != nil && f.Changed {
		c.target.store = []string{"--store", withoutPassword(f.Value.String())}
	}
}

// withoutPassword returns the value of --store. If the value has a password, withoutPassword returns
// storeVariable instead.
func withoutPassword(store string) string {
	if !policy.IsPlace(store) || strings.HasPrefix(store, "sqlite:") {
		return store
	}
	u, err := url.Parse(store)
	if err != nil {
		return storeVariable
	}
	_, has := u.User.Password()
	if has || slices.ContainsFunc([]string{"password", "sslpassword"}, u.Query().Has) {
		return storeVariable
	}
	return store
}

// Suggest returns a complete command of semel that the user can type: the words, and the flags with which the
// user chose the policy and the database. A flag that the command does not have is left out.
func (c *CLI) Suggest(words ...string) string { return c.SuggestIn("", words...) }

// SuggestIn is Suggest for a command about a store of the policy. SuggestIn adds the name of the store if the
// policy has several databases and the user has named no database.
func (c *CLI) SuggestIn(store string, words ...string) string {
	where := slices.Clone(c.target.store)
	if len(where) == 0 && c.target.hasSeveral && store != "" {
		where = []string{"--store", store}
	}
	line := append([]string{"semel"}, words...)
	if c.suggestable("config", words) {
		line = append(line, c.target.config...)
	}
	if c.suggestable("store", words) {
		line = append(line, where...)
		c.target.hidesPassword = c.target.hidesPassword || slices.Contains(where, storeVariable)
	}
	return shellLine(line...)
}

// suggestable reports whether the command at the start of words has the flag.
func (c *CLI) suggestable(flag string, words []string) bool {
	if c.target.root == nil {
		return false
	}
	cmd, _, err := c.target.root.Find(words)
	return err == nil && cmd.Flags().Lookup(flag) != nil
}

// If storeVariable was printed in a suggested command, ExplainSuggestions tells the user how to set the
// variable.
func (c *CLI) ExplainSuggestions() {
	if c.target.hidesPassword {
		c.Remark("before you type these commands, set and export SEMEL_STORE: the address of the database has a password and is not printed")
	}
}

// shellLine joins words to a command line for a shell, quoted where necessary. The shell replaces
// storeVariable after --store.
func shellLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch quoted[i] = w; {
		case w == storeVariable && i > 0 && words[i-1] == "--store":
			quoted[i] = `"` + w + `"`
		case w == "" || strings.Trim(w, safeCharacters) != "":
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// safeCharacters has the characters that need no quotes in a shell.
const safeCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%"
