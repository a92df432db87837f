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

// filter are the flags that choose rows.
type filter struct {
	store, reason, kind, id, before, group string
	states                                 []string
	// yes answers the question before an act on all rows, and everything says that no filter
	// narrows them.
	yes, everything bool
	// legal are the states in which the act can change a row; nil: any.
	legal []store.RowState
}

// offered are the words of --state.
func (f *filter) offered() []string {
	if f.legal == nil {
		return states()
	}
	return append(words(f.legal), anyState)
}

// anyState is the word of --state for rows in every state.
const anyState = "ANY"

// add adds the flags. --reason filters by the reason of a row in every command; --because is
// the operator's own reason for an act. The states are chosen if the user gives none.
func (f *filter) add(c *command.CLI, cmd *cobra.Command, standard ...store.RowState) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "only this store of the policy (changes need it if there are several); or a database: postgres://… or sqlite:FILE")
	flags.StringVar(&f.reason, "reason", "", "only rows with this reason")
	flags.StringVar(&f.kind, "type", "", "only messages of this type")
	flags.StringVar(&f.id, "id", "", "only rows of this identity")
	flags.StringVar(&f.before, "before", "", "only rows received before this: 2006-01-02, an RFC 3339 time, or 24h (ago)")
	flags.StringSliceVar(&f.states, "state", words(standard), "only rows in these states: "+strings.Join(f.offered(), ", "))
	command.CompleteFlag(cmd, "state", f.offered())
	command.CompleteFlag(cmd, "reason", reasons())
	command.RefuseEmpty(cmd, "store", "consumer", "reason", "type", "id", "before", "state", "group", "topic")
	return c.WithConsumer(cmd, "only rows of this consumer")
}

// rows is the filter of the flags.
func (f *filter) rows(c *command.CLI, now func() time.Time) (store.RowFilter, error) {
	chosen := store.RowFilter{Consumer: c.Consumer, Reason: semel.Reason(f.reason), Type: f.kind}
	if f.id != "" {
		chosen.IDs = []string{f.id}
	}
	for _, word := range f.states {
		state := store.RowState(strings.ToUpper(word))
		switch {
		case state == anyState:
			chosen.States = nil
			return chosen, f.received(&chosen, now)
		case !slices.Contains(states(), string(state)):
			return chosen, command.UsageError("--state %q is no state; the states are %s", word, stateWords())
		case f.legal != nil && !slices.Contains(f.legal, state):
			return chosen, command.UsageError("--state %s: nothing can be done here to rows in that state; the states are %s", state, strings.Join(f.offered(), ", "))
		}
		chosen.States = append(chosen.States, state)
	}
	return chosen, f.received(&chosen, now)
}

// received reads --before.
func (f *filter) received(chosen *store.RowFilter, now func() time.Time) error {
	if f.before == "" {
		return nil
	}
	at, err := command.ParseTime("before", f.before, now)
	chosen.ReceivedBefore = at
	return err
}

// targets are the rows of an act: numbers, or with --all what the flags choose.
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
	f.everything = given == "" || given == "state" && slices.Contains(f.states, anyState)
	return f.rows(c, time.Now)
}

// meantBecause is for who justifies an act with the flag that filters.
func meantBecause(flag string) string {
	if flag == "reason" {
		return "; --because says why you do this"
	}
	return ""
}

// givenFilter is the first flag that the command line gives and that chooses
// rows; empty if there is none. --store is none: it says whose numbers are meant.
func givenFilter(cmd *cobra.Command) string {
	for _, name := range []string{"consumer", "reason", "group", "type", "id", "before", "state"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// words are states as a flag has them.
func words(states []store.RowState) []string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = string(s)
	}
	return all
}

// reasons are Semel's own of rows that were set aside; handlers may give others. A test
// holds them to the list in reason.go.
func reasons() []string {
	var all []string
	for _, r := range []semel.Reason{semel.ReasonConflict, reasonname.FormerConflict, semel.ReasonPermanent, semel.ReasonExhausted, semel.ReasonPrecondition, reasonname.MissingParameter, reasonname.BadEffects,
		reasonname.WaitTooLong, reasonname.UnknownType, semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity, reasonname.IdentityTooLong, reasonname.Filtered,
		reasonname.NoVersion, reasonname.Stale, semel.ReasonGap, reasonname.Behind, reasonname.Expired, reasonname.Kills, reasonname.Suppressed, reasonname.Steps, semel.ReasonOutcomeUnknown, reasonname.Erased, admin.ReasonReopened, reasonname.Unreadable} {
		all = append(all, string(r))
	}
	return all
}
