package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// StoreNames completes the name of a store of the policy.
func (c *CLI) StoreNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.named(func(p *policy.Policy) (all []string) {
		for _, s := range p.Stores {
			all = append(all, s.Name)
		}
		return all
	})
}

// ConsumerNames completes the name of a consumer of the policy.
func (c *CLI) ConsumerNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.named(func(p *policy.Policy) (all []string) {
		for _, consumer := range p.Consumers {
			all = append(all, consumer.Name)
		}
		return all
	})
}

// named proposes names of the policy, if it can be read.
func (c *CLI) named(of func(*policy.Policy) []string) (all []string, _ cobra.ShellCompDirective) {
	if p, err := c.Load(); err == nil {
		all = of(p)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// WithConfig adds the flags of a command that reads a policy.
func (c *CLI) WithConfig(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.Config, "config", "semel.yaml", "the policy file")
	cmd.Flags().BoolVar(&c.JSON, "json", false, "print one JSON document")
	return cmd
}

// WithConsumer adds --consumer, completed from the policy.
func (c *CLI) WithConsumer(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().StringVar(&c.Consumer, "consumer", "", help)
	if err := cmd.RegisterFlagCompletionFunc("consumer", c.ConsumerNames); err != nil {
		panic(err)
	}
	return cmd
}

// ConsumerWord completes the only word behind a command, which names a consumer.
func (c *CLI) ConsumerWord(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.ConsumerNames(cmd, words, begun)
}

// CompleteFlag lets the shell complete a flag with words.
func CompleteFlag(cmd *cobra.Command, flag string, words []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// RefuseEmpty refuses flags that are given and empty, as with a variable of the shell
// that is not set: they would choose everything.
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

// ParseTime reads the time that a flag gives, or how long ago it was.
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

// OperatorName is who acts.
func OperatorName(as string) (string, error) {
	if as != "" {
		return as, nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	return "", UsageError("the operating system does not say who you are; use --as NAME")
}

// StoreFlag adds the flag for the store, or for a database without a policy.
func StoreFlag(cmd *cobra.Command, store *string) {
	cmd.Flags().StringVar(store, "store", "", "only this store of the policy; or a database: postgres://… or sqlite:FILE")
}

// RecordFlags add the flags for the record of an act; see recorded.
func RecordFlags(cmd *cobra.Command, who, why *string) {
	BecauseFlag(cmd, why, "why you do this, for the record")
	WhoFlag(cmd, who)
}

// BecauseFlag adds the flag for why somebody acts, which no command uses as a filter.
func BecauseFlag(cmd *cobra.Command, why *string, help string) {
	cmd.Flags().StringVarP(why, "because", "m", "", help)
}

// WhoFlag adds --as.
func WhoFlag(cmd *cobra.Command, who *string) {
	cmd.Flags().StringVar(who, "as", "", "your name for the audit trail (default: the operating system user)")
}

// CheckRecord checks what the record of an act needs, and finds out who is to be in it. Of what
// is not done nobody has to say why.
func CheckRecord(who *string, why string, dry bool) (err error) {
	if strings.TrimSpace(why) == "" && !dry {
		return UsageError("--because is missing: say why you do this, it is recorded with the act")
	}
	*who, err = OperatorName(*who)
	return err
}

// Because is what is done, with why where somebody says it.
func Because(what, why string) string {
	if strings.TrimSpace(why) == "" {
		return what
	}
	return what + ": " + why
}

// YesFlag adds the flag that answers the question of an act beforehand.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// Ask asks a person on a terminal, and returns an error unless the answer is yes.
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

// Asks reports whether a person can be asked.
func (c *CLI) Asks() bool { return c.OutTerminal && !c.JSON }
