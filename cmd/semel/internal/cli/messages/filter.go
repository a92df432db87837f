package messages

import (
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// filter has the flags that choose messages or intents.
type filter struct {
	store, reason, kind, id, before, group string
	states                                 []string
	// skipConfirmation skips the confirmation before a command changes all rows. unrestricted means that no
	// flag restricts the rows.
	skipConfirmation, unrestricted bool
	// legal has the states in which the command can change a row; nil means all states.
	legal []store.RowState
}

// anyState is the value of --state that chooses messages in all states.
const anyState = "all"

func (f *filter) possibleStates() (all []string) {
	for _, s := range admin.States() {
		if len(f.storedStates(s)) > 0 {
			all = append(all, string(s))
		}
	}
	return append(all, anyState)
}

// storedStates returns the states of rows that belong to the printed state s and that the command can
// change.
func (f *filter) storedStates(s admin.State) []store.RowState {
	return slices.DeleteFunc(s.Stored(), func(s store.RowState) bool { return f.legal != nil && !slices.Contains(f.legal, s) })
}

// add adds the flags to a command. The parameter standard has the states that the command chooses without
// --state.
func (f *filter) add(c *command.CLI, cmd *cobra.Command, standard ...admin.State) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "a store of the policy, postgres://… or sqlite:FILE")
	flags.StringVar(&f.reason, "reason", "", "only those with this reason")
	flags.StringVar(&f.group, "group", "", "only this failure group, as summary prints it")
	flags.StringVar(&f.kind, "type", "", "only those of this type")
	flags.StringVar(&f.id, "id", "", "only those of this identity")
	flags.StringVar(&f.before, "before", "", "only those received before: 2006-01-02, or 24h (ago)")
	flags.StringSliceVar(&f.states, "state", stateNames(standard), "states")
	command.CompleteFlag(cmd, "state", f.possibleStates())
	command.CompleteFlag(cmd, "reason", reasons())
	command.RefuseEmpty(cmd, "store", "consumer", "reason", "type", "id", "before", "state", "group", "topic")
	return c.WithConfig(c.WithConsumer(cmd, "only those of this consumer"))
}

// filterFlags returns the names of the flags that choose rows.
func filterFlags() []string {
	return []string{"consumer", "reason", "group", "type", "id", "before", "state"}
}

// rowFilter returns the row filter for the given flags. The flag --group is not part of the row filter.
func (f *filter) rowFilter(c *command.CLI, now func() time.Time) (store.RowFilter, error) {
	chosen := store.RowFilter{Consumer: c.Consumer, Reason: semel.Reason(f.reason), Type: f.kind}
	if f.id != "" {
		chosen.IDs = []string{f.id}
	}
	if f.before != "" {
		at, err := command.ParseTime("before", f.before, now)
		if err != nil {
			return chosen, err
		}
		chosen.ReceivedBefore = at
	}
	if slices.Contains(f.states, anyState) {
		return chosen, nil
	}
	for _, word := range f.states {
		state := admin.State(strings.ToLower(word))
		switch stored := f.storedStates(state); {
		case len(stored) > 0:
			chosen.States = append(chosen.States, stored...)
		case len(state.Stored()) == 0:
			return chosen, command.UsageError("--state %q is no state; the states are %s", word, strings.Join(f.possibleStates(), ", "))
		default:
			return chosen, command.UsageError("--state %s: this command changes nothing in that state; the states are %s", state, strings.Join(f.possibleStates(), ", "))
		}
	}
	return chosen, nil
}

// targets returns a filter for the rows that a command changes. The user gives row numbers, or --all with
// flags that choose rows.
func (f *filter) targets(c *command.CLI, cmd *cobra.Command, all bool, args []string) (store.RowFilter, error) {
	numbers, err := parseNumbers(args)
	given := givenFilter(cmd)
	switch {
	case err != nil:
		return store.RowFilter{}, err
	case all && len(numbers) > 0:
		return store.RowFilter{}, command.UsageError("give row numbers or --all, not both")
	case !all && len(numbers) == 0:
		return store.RowFilter{}, command.UsageError("name rows by number, or use --all with filters; ls shows them")
	case !all && given != "":
		return store.RowFilter{}, command.UsageError("give row numbers or --%s, not both: a number names one row, whatever it is; with --all the filters choose%s", given, meantBecause(given))
	case !all:
		return store.RowFilter{Numbers: numbers}, nil
	}
	f.unrestricted = given == "" || given == "state" && slices.Contains(f.states, anyState)
	return f.rowFilter(c, time.Now)
}

// meantBecause returns a hint for users who confuse --reason, which filters rows, with --because, which
// records why a person changes rows.
func meantBecause(flag string) string {
	if flag == "reason" {
		return "; --because says why you do this"
	}
	return ""
}

// givenFilter returns the name of the first given flag that chooses rows, or "" if no such flag is given.
func givenFilter(cmd *cobra.Command) string {
	for _, name := range filterFlags() {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// stateNames returns the values of --state for states.
func stateNames(states []admin.State) []string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = string(s)
	}
	return all
}

// reasons returns the reasons that Semel itself gives to rows. Handlers can use further reasons. A test
// compares the returned list with reason.go.
func reasons() []string {
	var all []string
	for _, r := range []semel.Reason{semel.ReasonConflict, reasonname.FormerConflict, semel.ReasonPermanent, semel.ReasonExhausted, semel.ReasonPrecondition, reasonname.MissingParameter, reasonname.BadEffects,
		reasonname.WaitTooLong, reasonname.UnknownType, semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity, reasonname.IdentityTooLong, reasonname.Filtered,
		reasonname.NoVersion, reasonname.Stale, semel.ReasonGap, reasonname.Behind, reasonname.Expired, reasonname.Kills, reasonname.Suppressed, reasonname.Steps, semel.ReasonOutcomeUnknown, reasonname.Erased, admin.ReasonReopened, reasonname.Unreadable} {
		all = append(all, string(r))
	}
	return all
}
