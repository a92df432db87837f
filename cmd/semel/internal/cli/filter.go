package cli

import (
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel"
)

// filter are the flags that choose rows.
type filter struct {
	store, reason, kind, id, before string
	states                          []string
}

// anyState is the word of --state for rows in every state.
const anyState = "ANY"

// add adds the flags; reason is the name of the one for why a row was set
// aside, because --reason of an act says why the operator acts.
func (f *filter) add(c *common, cmd *cobra.Command, reason string) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "only this store; needed for acts where the policy has several")
	flags.StringVar(&f.reason, reason, "", "only rows set aside for this reason")
	flags.StringVar(&f.kind, "type", "", "only messages of this type")
	flags.StringVar(&f.id, "id", "", "only rows of this identity")
	flags.StringVar(&f.before, "before", "", "only rows received before this: 2006-01-02, an RFC 3339 time, or 24h (ago)")
	flags.StringSliceVar(&f.states, "state", []string{string(semel.StateParked)}, "only rows in these states; ANY for all")
	return c.withConsumer(cmd, "only rows of this consumer")
}

// rows is the filter of the flags.
func (f *filter) rows(c *common, now func() time.Time) (semel.RowFilter, error) {
	chosen := semel.RowFilter{Consumer: c.consumer, ID: f.id, Reason: semel.Reason(f.reason), Type: f.kind}
	for _, word := range f.states {
		state := semel.RowState(strings.ToUpper(word))
		switch {
		case state == anyState:
			chosen.States = nil
			return chosen, f.received(&chosen, now)
		case !slices.Contains(states(), state):
			return chosen, usage("--state %q is no state; the states are %v and %s", word, states(), anyState)
		}
		chosen.States = append(chosen.States, state)
	}
	return chosen, f.received(&chosen, now)
}

// received reads --before.
func (f *filter) received(chosen *semel.RowFilter, now func() time.Time) error {
	if f.before == "" {
		return nil
	}
	if ago, err := time.ParseDuration(f.before); err == nil && ago > 0 {
		chosen.ReceivedBefore = now().Add(-ago)
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, f.before); err == nil {
			chosen.ReceivedBefore = at
			return nil
		}
	}
	return usage("--before %q is no time; write 2006-01-02, 2006-01-02T15:04:05Z, or 24h for a day ago", f.before)
}

// targets are the rows of an act: numbers, or with --all what the flags choose.
func (f *filter) targets(c *common, all bool, args []string) (semel.RowFilter, error) {
	numbers, err := parseNumbers(args)
	switch {
	case err != nil:
		return semel.RowFilter{}, err
	case all && len(numbers) > 0:
		return semel.RowFilter{}, usage("give row numbers or --all, not both")
	case !all && len(numbers) == 0:
		return semel.RowFilter{}, usage("name rows by number, or use --all with filters; 'semel parked ls' shows them")
	case !all:
		return semel.RowFilter{Numbers: numbers}, nil
	}
	return f.rows(c, time.Now)
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
