package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

type eraseFlags struct {
	command.Listing
	store                             string
	ids, sources, consumers, states   []string
	idFile, reason, kind, header      string
	from, before                      string
	all, discard, vacuum, dryRun, yes bool
	who, why                          string
}

func eraseCommand(c *command.CLI) *cobra.Command {
	e := &eraseFlags{}
	cmd := &cobra.Command{
		Use:   "erase --id ID --because TEXT",
		Short: "Erase message contents",
		Long: `Erase the stored contents of messages and of the intents that they caused.
Identities stay, so copies are still duplicates. See docs/operate/erase.md.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(c, cmd) },
	}
	e.add(c, cmd)
	return c.WithConfig(cmd)
}

func (e *eraseFlags) add(c *command.CLI, cmd *cobra.Command) {
	flags := cmd.Flags()
	command.StoreFlag(cmd, &e.store)
	flags.StringArrayVar(&e.ids, "id", nil, "an identity; may be repeated")
	flags.StringVar(&e.idFile, "ids", "", "file with one identity a line; - is standard input")
	flags.StringArrayVar(&e.sources, "source", nil, "only identities of this source; may be repeated")
	flags.StringArrayVar(&e.consumers, "consumer", nil, "only of this consumer; may be repeated")
	flags.StringSliceVar(&e.states, "state", nil, "only in these states")
	flags.StringVar(&e.reason, "reason", "", "only those with this reason")
	flags.StringVar(&e.kind, "type", "", "only those of this type")
	flags.StringVar(&e.header, "header", "", "only those with this header, as NAME=VALUE")
	flags.StringVar(&e.from, "from", "", "only received since: 2006-01-02, or 24h (ago)")
	flags.StringVar(&e.before, "before", "", "only received before: 2006-01-02, or 24h (ago)")
	flags.BoolVar(&e.all, "all", false, "everything, without other filters")
	flags.BoolVar(&e.discard, "discard", false, "discard unfinished messages, and erase them")
	flags.BoolVar(&e.vacuum, "vacuum", false, "then vacuum the database; SQLite blocks writers")
	flags.BoolVar(&e.dryRun, "dry-run", false, "only count what would be erased")
	command.YesFlag(cmd, &e.yes)
	command.RecordFlags(cmd, &e.who, &e.why)
	e.Listing.Add(c, cmd, 100, "rows that were left")
	command.CompleteFlag(cmd, "state", (&filter{}).possibleStates())
	command.CompleteFlag(cmd, "reason", reasons())
	if err := cmd.RegisterFlagCompletionFunc("consumer", c.ConsumerNames); err != nil {
		panic(err)
	}
	command.RefuseEmpty(cmd, "store", "id", "ids", "consumer", "reason", "type", "header", "from", "before", "state")
}

func (e *eraseFlags) run(c *command.CLI, cmd *cobra.Command) error {
	if err := e.Check(c, cmd); err != nil {
		return err
	}
	filter, err := e.filter(c)
	if err != nil {
		return err
	}
	chosen := *filter
	everything := chosen.Consumers == nil && chosen.Sources == nil && chosen.IDs == nil && !chosen.OfRows() && chosen.From.IsZero() && chosen.Before.IsZero()
	if everything && !e.all {
		return command.UsageError("say what to erase: --id, --header, --consumer, … or --all for everything")
	}
	if value := string(filter.Header.Value); value != "" && strings.Contains(e.why, value) {
		return command.UsageError("--because contains the value of --header, and would be kept in the audit trail; name a ticket instead")
	}
	if err := command.CheckRecord(&e.who, e.why, e.dryRun); err != nil {
		return err
	}
	if everything {
		if err := e.confirm(c); err != nil {
			return err
		}
	}
	a, err := c.OpenBoxes(cmd.Context(), e.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	filter.Consumers = nil
	for _, name := range e.consumers {
		names, err := c.AllNames(cmd.Context(), a, name)
		if err != nil {
			return err
		}
		filter.Consumers = append(filter.Consumers, names...)
	}
	return erase(cmd.Context(), c, a, e, *filter)
}

// confirm asks for confirmation before the command erases all messages.
func (e *eraseFlags) confirm(c *command.CLI) error {
	switch {
	case e.yes || e.dryRun:
		return nil
	case !c.Asks():
		return command.UsageError("--yes is missing: --all erases the contents of all messages, and they cannot be restored; look with --dry-run, or confirm with --yes")
	}
	return c.Ask("--all erases the contents of all messages, and they cannot be restored. Erase all?")
}

func (e *eraseFlags) filter(c *command.CLI) (*admin.ErasureFilter, error) {
	f := &admin.ErasureFilter{Consumers: e.consumers, Sources: e.sources, IDs: e.ids, Reason: semel.Reason(e.reason), Type: e.kind}
	if e.idFile != "" {
		ids, err := readIDs(c, e.idFile)
		if err != nil {
			return nil, err
		}
		f.IDs = append(f.IDs, ids...)
	}
	rows, err := (&filter{states: e.states, before: e.before}).rowFilter(c, time.Now)
	if err != nil {
		return nil, err
	}
	f.States, f.Before = rows.States, rows.ReceivedBefore
	if e.from != "" {
		if f.From, err = command.ParseTime("from", e.from, time.Now); err != nil {
			return nil, err
		}
	}
	if !f.From.IsZero() && !f.Before.IsZero() && !f.From.Before(f.Before) {
		return nil, command.UsageError("--from %s is not earlier than --before %s: nothing lies between", e.from, e.before)
	}
	if e.header != "" {
		name, value, is := strings.Cut(e.header, "=")
		if !is || name == "" {
			return nil, command.UsageError("--header %q is no header; write NAME=VALUE", e.header)
		}
		f.Header = semel.Header{Name: name, Value: []byte(value)}
	}
	return f, nil
}

// readIDs reads a file with one id per line.
func readIDs(c *command.CLI, name string) (ids []string, err error) {
	in, err := c.OpenInput(name)
	if err != nil {
		return nil, command.Failed(err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	lines := newLines(in)
	for lines.Scan() {
		if id := strings.TrimSuffix(lines.Text(), "\r"); id != "" {
			ids = append(ids, id)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, command.Failed(fmt.Errorf("--ids %s: %w", name, err))
	}
	if len(ids) == 0 {
		return nil, command.UsageError("--ids %s has no identity", name)
	}
	return ids, nil
}

// erase erases messages in each store and prints the result.
func erase(ctx context.Context, c *command.CLI, a *assembly.Assembly, e *eraseFlags, f admin.ErasureFilter) error {
	if err := confirmErased(ctx, c, a, e, f); err != nil {
		return err
	}
	all := []operate.ErasureReport{}
	var stopped error
	for _, s := range a.Stores {
		live := c.Live()
		o := operate.Erasure{Filter: f, Who: e.who, Why: e.why, DryRun: e.dryRun, Discard: e.discard, Shown: e.Limit, Progress: func(r operate.ErasureReport) {
			live.Printf("%s: %d identities erased, %d rows left", r.Store, r.Identities, r.Left)
		}}
		report, err := command.BoxOf(s).Erase(ctx, s, o)
		live.End()
		all = append(all, report)
		if err == nil && !e.dryRun {
			err = e.scrub(ctx, c, s)
		}
		if err != nil {
			stopped = err
			break
		}
	}
	err := printErased(c, all, e, placesNotErased(a.Policy(), a.Stores))
	if stopped != nil {
		return errors.Join(command.Failed(stopped), err)
	}
	if left := leftOf(all); err == nil && left > 0 && !(e.dryRun && e.discard) {
		return command.Failed(fmt.Errorf("erase: %s in the way, and the identities were left", output.WithVerb(int(left), "row", "is", "are")))
	}
	return err
}

// confirmErased asks for confirmation before --discard ends rows whose calls may have taken effect.
func confirmErased(ctx context.Context, c *command.CLI, a *assembly.Assembly, e *eraseFlags, f admin.ErasureFilter) error {
	if !e.discard || e.yes || e.dryRun {
		return nil
	}
	var doubted []store.StoredRow
	look := operate.Erasure{Filter: f, DryRun: true, Shown: 1, Doubted: func(r store.StoredRow) { doubted = append(doubted, r) }}
	for _, s := range a.Stores {
		if _, err := command.BoxOf(s).Erase(ctx, s, look); err != nil {
			return command.Failed(err)
		}
	}
	if len(doubted) == 0 {
		return nil
	}
	return confirmDoubted(c, doubted)
}

// scrub removes old versions of the erased rows from the database files. If the write-ahead log cannot be
// emptied, scrub prints a remark. With the flag --vacuum, scrub returns an error instead of printing a
// remark.
func (e *eraseFlags) scrub(ctx context.Context, c *command.CLI, s *assembly.Store) error {
	err := s.Scrub(ctx, e.vacuum)
	if err != nil && !e.vacuum && ctx.Err() == nil {
		c.Remark("%s: %v", s.Name(), err)
		return nil
	}
	return err
}

func leftOf(all []operate.ErasureReport) (left int64) {
	for _, r := range all {
		left += r.Left
	}
	return left
}

func sortedUnique(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
