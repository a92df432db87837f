package cli

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

// storeNames completes the name of a store of the policy.
func (c *common) storeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.named(func(p *policy.Policy) (all []string) {
		for _, s := range p.Stores {
			all = append(all, s.Name)
		}
		return all
	})
}

// consumerNames completes the name of a consumer of the policy.
func (c *common) consumerNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.named(func(p *policy.Policy) (all []string) {
		for _, consumer := range p.Consumers {
			all = append(all, consumer.Name)
		}
		return all
	})
}

// named proposes names of the policy, if it can be read.
func (c *common) named(of func(*policy.Policy) []string) (all []string, _ cobra.ShellCompDirective) {
	if p, err := c.load(); err == nil {
		all = of(p)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// withConfig adds the flags of a command that reads a policy.
func (c *common) withConfig(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.config, "config", "semel.yaml", "the policy file")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON document")
	return cmd
}

// withConsumer adds --consumer, completed from the policy.
func (c *common) withConsumer(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().StringVar(&c.consumer, "consumer", "", help)
	if err := cmd.RegisterFlagCompletionFunc("consumer", c.consumerNames); err != nil {
		panic(err)
	}
	return cmd
}

// consumerWord completes the only word behind a command, which names a consumer.
func (c *common) consumerWord(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.consumerNames(cmd, words, begun)
}

// complete lets the shell complete a flag with words.
func complete(cmd *cobra.Command, flag string, words []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// refuseEmpty refuses flags that are given and empty, as with a variable of the shell
// that is not set: they would choose everything.
func refuseEmpty(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			f := cmd.Flags().Lookup(name)
			if f != nil && f.Changed && strings.TrimSpace(strings.Trim(f.Value.String(), "[]")) == "" {
				return usage("--%s is empty, which would choose all; leave it out if that is meant", name)
			}
		}
		return nil
	}
}

// timeOf reads the time that a flag gives, or how long ago it was.
func timeOf(flag, text string, now func() time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usage("--%s %q is no time; write 2006-01-02, 2006-01-02T15:04:05Z, or 24h for a day ago", flag, text)
}

// operator is who acts.
func operator(as string) (string, error) {
	if as != "" {
		return as, nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	return "", usage("the operating system does not say who you are; use --as NAME")
}

// storeFlag adds the flag for the store, or for a database without a policy.
func storeFlag(cmd *cobra.Command, store *string) {
	cmd.Flags().StringVar(store, "store", "", "only this store, by its name in the policy; or a database without a policy, as postgres://… or sqlite:FILE")
}

// recordFlags add the flags for the record of an act; see recorded.
func recordFlags(cmd *cobra.Command, who, why *string) {
	becauseFlag(cmd, why, "why you do this, for the record")
	whoFlag(cmd, who)
}

// becauseFlag adds the flag for why somebody acts, which no command uses as a filter.
func becauseFlag(cmd *cobra.Command, why *string, help string) {
	cmd.Flags().StringVarP(why, "because", "m", "", help)
}

func whoFlag(cmd *cobra.Command, who *string) {
	cmd.Flags().StringVar(who, "as", "", "who does it, for the record (default: the user of the operating system)")
}

// recorded checks what the record of an act needs, and finds out who is to be in it. Of what
// is not done nobody has to say why.
func recorded(who *string, why string, dry bool) (err error) {
	if strings.TrimSpace(why) == "" && !dry {
		return usage("--because is missing: say why you do this, it is recorded with the act")
	}
	*who, err = operator(*who)
	return err
}

// because is what is done, with why where somebody says it.
func because(what, why string) string {
	if strings.TrimSpace(why) == "" {
		return what
	}
	return what + ": " + why
}

// yesFlag adds the flag that answers the question of an act beforehand.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// ask asks a person on a terminal, and returns an error unless the answer is yes.
func (c *common) ask(question string) error {
	fmt.Fprint(c.Out, question+" [y/N] ")
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word == "y" || word == "yes" {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return failed(err)
	}
	return failed(errors.New("nothing was changed"))
}

// asks reports whether a person can be asked.
func (c *common) asks() bool { return c.OutTerminal && !c.json }
