package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// StoreNames completes the names of stores in the policy.
func (c *CLI) StoreNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.completeNames(func(p *policy.Policy) (all []string) {
		for _, s := range p.Stores {
			all = append(all, s.Name)
		}
		return all
	})
}

// ConsumerNames completes the names of consumers in the policy.
func (c *CLI) ConsumerNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.completeNames(func(p *policy.Policy) (all []string) {
		for _, consumer := range p.Consumers {
			all = append(all, consumer.Name)
		}
		return all
	})
}

// completeNames completes names from the policy. If the policy cannot be read, completeNames returns
// no completions.
func (c *CLI) completeNames(of func(*policy.Policy) []string) (all []string, _ cobra.ShellCompDirective) {
	if p, err := c.Load(); err == nil {
		all = of(p)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// WithConfig adds --config and --output to a command that reads a policy.
func (c *CLI) WithConfig(cmd *cobra.Command) *cobra.Command {
	c.ConfigFlag(cmd)
	return c.OutputFlag(cmd)
}

// ConfigFlag adds the flag --config.
func (c *CLI) ConfigFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.Config, "config", "semel.yaml", "the policy file")
}

// Variable is an environment variable that sets the default of a flag.
type Variable struct{ Flag, Name string }

// Variables returns the environment variables that set the defaults of flags.
func Variables() []Variable {
	return []Variable{{"config", "SEMEL_CONFIG"}, {"store", "SEMEL_STORE"}}
}

// FromEnvironment sets the flags --config and --store to the environment variables SEMEL_CONFIG and
// SEMEL_STORE. Flags on the command line take precedence over environment variables.
func (c *CLI) FromEnvironment(cmd *cobra.Command) {
	for _, v := range Variables() {
		f := cmd.Flags().Lookup(v.Flag)
		if f == nil || c.Env == nil {
			continue
		}
		if value, _ := c.Env(v.Name); value != "" {
			_ = f.Value.Set(value) // cannot fail for a string flag
		}
	}
}

// WithConsumer adds the flag --consumer, with completion from the policy.
func (c *CLI) WithConsumer(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().StringVar(&c.Consumer, "consumer", "", help)
	if err := cmd.RegisterFlagCompletionFunc("consumer", c.ConsumerNames); err != nil {
		panic(err)
	}
	return cmd
}

// ConsumerWords completes several arguments that are names of consumers. A name that was given already is
// not suggested again.
func (c *CLI) ConsumerWords(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	all, directive := c.ConsumerNames(cmd, words, begun)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(words, name) }), directive
}

// ConsumerWord completes a single argument that is the name of a consumer.
func (c *CLI) ConsumerWord(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.ConsumerNames(cmd, words, begun)
}

// ForConsumer makes the command store its only argument, the name of a consumer, in c.Consumer.
func (c *CLI) ForConsumer(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = c.ConsumerWord
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return UsageError("name one consumer: %s NAME", cmd.CommandPath())
		}
		c.Consumer = args[0]
		return nil
	}
	return cmd
}

// CompleteFlag lets the shell suggest words as values of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, words []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// RefuseEmpty returns a usage error if one of the flags is given with an empty value, for instance from an
// unset shell variable. The empty value would choose everything.
func RefuseEmpty(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			f := cmd.Flags().Lookup(name)
			if f != nil && f.Changed && strings.TrimSpace(strings.Trim(f.Value.String(), "[]")) == "" {
				return UsageError("--%s is empty, which would choose all; leave it out if that is meant", name)
			}
		}
		return nil
	}
}

// ParseTime parses the value of a flag: a time, or a duration before now.
func ParseTime(flag, text string, now func() time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, UsageError("--%s %q is no time; write 2006-01-02, 2006-01-02T15:04:05Z, or 24h for a day ago", flag, text)
}

// OperatorName returns the operator's name for the audit trail. OperatorName returns the parameter name, or the name of
// the operating system user if the parameter name is empty.
func OperatorName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	return "", UsageError("the operating system does not say who you are; use --as NAME")
}

// StoreFlag adds the flag --store, whose value is the name of a store or the location of a database.
func StoreFlag(cmd *cobra.Command, store *string) {
	cmd.Flags().StringVar(store, "store", "", "its name, or postgres://… or sqlite:FILE")
}

// RecordFlags adds the flags --because and --as, whose values go to the audit trail; see CheckRecord.
func RecordFlags(cmd *cobra.Command, who, why *string) {
	BecauseFlag(cmd, why, "your reason, for the audit trail")
	WhoFlag(cmd, who)
}

// BecauseFlag adds the flag --because, the reason for a change. No command uses the flag --because to filter
// rows.
func BecauseFlag(cmd *cobra.Command, why *string, help string) {
	cmd.Flags().StringVarP(why, "because", "m", "", help)
}

// DryRunFlag adds the flag --dry-run.
func DryRunFlag(cmd *cobra.Command, dry *bool) {
	cmd.Flags().BoolVar(dry, "dry-run", false, "only show what would change")
}

// WhoFlag adds the flag --as.
func WhoFlag(cmd *cobra.Command, who *string) {
	cmd.Flags().StringVar(who, "as", "", "your name (default: the operating system user)")
}

// CheckRecord returns a usage error if a change has no reason. If *who is empty, CheckRecord sets *who to the name of
// the operating system user. A dry run needs no reason.
func CheckRecord(who *string, why string, dry bool) (err error) {
	if strings.TrimSpace(why) == "" && !dry {
		return UsageError("--because is missing: say why you do this; the reason is recorded with the change")
	}
	*who, err = OperatorName(*who)
	return err
}

// Because returns the parameter what. If the user gave a reason, the parameter why, Because adds the reason.
func Because(what, why string) string {
	if strings.TrimSpace(why) == "" {
		return what
	}
	return what + ": " + why
}

// YesFlag adds the flag --yes, which confirms a change without a question.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// Ask asks the user a question on the terminal. Ask returns an error unless the answer is yes.
func (c *CLI) Ask(question string) error {
	fmt.Fprint(c.Out, question+" [y/N] ")
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word == "y" || word == "yes" {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Failed(err)
	}
	return Failed(errors.New("nothing was changed"))
}

// Asks reports whether the command can ask the user a question.
func (c *CLI) Asks() bool { return c.OutTerminal && !c.JSON }
