package replays

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/reconcile"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/spf13/cobra"
)

type reconcileFlags struct {
	command.Listing
	file, format, query, effects string
	topics                       []string
	from, to                     string
	interval                     span
	grace                        time.Duration
}

// span is a range of time. If the field from is zero, the range has no start. If the field to is zero, the
// range has no end.
type span struct{ from, to time.Time }

func reconcileCommand(c *command.CLI) *cobra.Command {
	r := &reconcileFlags{}
	cmd := &cobra.Command{
		Use:   "reconcile NAME (--file F | --topic T | --sql QUERY)",
		Short: "Compare sent messages with applied messages",
		Long: `Compare sent messages with the markers of a consumer and, with --effects, with
its effects. Exit code 4: something differs.

Sent messages come from a file, from topics, or from a query of the consumer's
store. The query of --effects returns one row for each effect, with the id of
the message and optionally its source. Findings:

  missing         sent, but without a record in the store
  doubled         more than one effect
  without effect  marked as applied, but without an effect
  unmarked        an effect, but not marked as applied
  unknown         the marker may have been removed, or there is no identity

The consumer may run meanwhile: missing messages are looked up again at the
end, and messages sent within --grace are not counted as missing. Waiting and
parked messages are counted, but are not findings. Markers under a previous
identity of the policy count. Topics are read up to their current end, without
a group. The command changes nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(r.Check(c, cmd), r.checkFlags(c)); err != nil {
				return err
			}
			return runReconcile(cmd.Context(), c, r)
		},
	}
	cmd.Flags().StringVar(&r.file, "file", "", "file with the sent messages, one a line; - is stdin")
	cmd.Flags().StringVar(&r.format, "format", file.CloudEvents.String(), "envelope, cloudevents, json")
	cmd.Flags().StringArrayVar(&r.topics, "topic", nil, "topic with the sent messages; repeatable")
	cmd.Flags().StringVar(&r.from, "from", "", "with --topic, start: a date, a time, or 24h (ago)")
	cmd.Flags().StringVar(&r.to, "to", "", "with --topic, end, in the same form")
	cmd.Flags().StringVar(&r.query, "sql", "", "query of the ids (and sources) of sent messages")
	cmd.Flags().StringVar(&r.effects, "effects", "", "query of the ids (and sources) of effects")
	cmd.Flags().DurationVar(&r.grace, "grace", time.Minute, "longest transit of a message")
	r.Add(c, cmd, 100, "findings")
	command.RefuseEmpty(cmd, "file", "format", "topic", "from", "to", "sql", "effects")
	return c.WithConfig(c.ForConsumer(cmd))
}

// checkFlags returns a usage error if the flags contradict each other.
func (r *reconcileFlags) checkFlags(c *command.CLI) (err error) {
	given := 0
	for _, is := range []bool{r.file != "", len(r.topics) > 0, r.query != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return command.UsageError("--file is missing: name a file with a message a line, or - for standard input; or give --topic, or --sql")
	case given > 1:
		return command.UsageError("give one of --file, --topic and --sql: each says what was sent")
	case r.grace < 0:
		return command.UsageError("--grace %v: give how long a message may be on its way, as 1m", r.grace)
	case len(r.topics) == 0 && r.from+r.to != "":
		return command.UsageError("--from and --to are of --topic: choose what the file has, or write it into the query")
	}
	for flag, at := range map[string]*time.Time{"from": &r.interval.from, "to": &r.interval.to} {
		if text := map[string]string{"from": r.from, "to": r.to}[flag]; text != "" {
			if *at, err = command.ParseTime(flag, text, time.Now); err != nil {
				return err
			}
		}
	}
	if !r.interval.from.IsZero() && !r.interval.to.IsZero() && !r.interval.from.Before(r.interval.to) {
		return command.UsageError("--from %s is not earlier than --to %s: nothing lies between", r.from, r.to)
	}
	return nil
}

// findings has the printed findings, and the number of all findings of each kind.
type findings struct {
	reconcile.Counts
	List  []reconcile.Finding `json:"findings"`
	limit int
}

func (f *findings) add(one reconcile.Finding) error {
	if f.limit == 0 || len(f.List) < f.limit {
		f.List = append(f.List, one)
	}
	return nil
}

func (f *findings) write(c *command.CLI, r *reconcileFlags) error {
	if c.JSON {
		if err := c.WriteJSON(f); err != nil {
			return err
		}
	} else if err := f.table(c, r); err != nil {
		return command.Failed(err)
	}
	if f.Found() == 0 {
		return nil
	}
	return command.Found(fmt.Errorf("reconcile: %s", f.summarizeKinds()))
}

func (f *findings) table(c *command.CLI, r *reconcileFlags) error {
	if len(f.List) > 0 {
		type view = reconcile.Finding
		if err := command.PrintTable(c, &r.Listing, f.List, output.Fixed(
			output.Text("WHAT", func(v view) string { return string(v.Kind) }),
			output.Flexible("ID", func(v view) string { return v.ID }),
			output.Flexible("SOURCE", func(v view) string { return v.Source }),
			output.Text("SENT", func(v view) string {
				if v.Sent.IsZero() {
					return ""
				}
				return v.Sent.Format(time.RFC3339)
			}),
			output.Number("EFFECTS", func(v view) int64 { return int64(v.Effects) }),
		)); err != nil {
			return err
		}
	}
	if shown := int64(len(f.List)); shown < f.Found() {
		fmt.Fprintf(c.Err, "%d of %d are shown; --limit 0 shows all\n", shown, f.Found())
	}
	_, err := fmt.Fprintln(c.Out, terminal.Wrap(f.summary(), r.Columns(c)))
	return err
}

// summary returns a sentence with the number of sent identities, the numbers by outcome, and the numbers of
// other findings.
func (f *findings) summary() string {
	parts := nonZeroCounts([]countOf{{f.Applied, "applied"}, {f.Waiting, "waiting"}, {f.Aside, "unapplied"}, {f.Late, "sent within the grace"}})
	text := fmt.Sprintf("%d identities were sent", f.Sent)
	if all := append(parts, f.kinds()...); len(all) > 0 {
		text += ": " + strings.Join(all, ", ")
	}
	for _, beside := range nonZeroCounts([]countOf{{f.Unusable, "messages have no identity"}, {f.Skipped, "messages are not the consumer's"}, {f.Others, "other ids have effects"}}) {
		text += "; " + beside
	}
	return text
}

func (f *findings) kinds() []string {
	return nonZeroCounts([]countOf{{f.Missing, string(reconcile.Missing)}, {f.Doubled, string(reconcile.Doubled)}, {f.WithoutEffect, string(reconcile.WithoutEffect)},
		{f.Unmarked, string(reconcile.Unmarked)}, {f.Unknown, string(reconcile.Unknown)}})
}

// summarizeKinds returns the number of findings of each kind, as text.
func (f *findings) summarizeKinds() string {
	return strings.Join(append(f.kinds(), nonZeroCounts([]countOf{{f.Unusable, "without an identity"}})...), ", ")
}

// countOf is a number and the name of the counted things.
type countOf struct {
	n    int64
	what string
}

// nonZeroCounts returns one text for each number that is not 0.
func nonZeroCounts(all []countOf) (texts []string) {
	for _, one := range all {
		if one.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return texts
}

// runReconcile compares the sent messages with the consumer's store and prints the findings.
func runReconcile(ctx context.Context, c *command.CLI, r *reconcileFlags) (err error) {
	switch {
	case r.file != "":
		return reconcileFile(ctx, c, r)
	case len(r.topics) > 0:
		return reconcileTopics(ctx, c, r)
	}
	a, of, err := openReconciled(ctx, c)
	if err != nil {
		return err
	}
	defer c.Close(a)
	s := a.Stores[0]
	return compare(ctx, c, r, s, of, func(to *reconcile.Comparison, _ *findings) error {
		err := to.SentBy(ctx, func(add func(id, source string) error) error { return s.Query(ctx, r.query, idsOf(add)) })
		if err != nil {
			return fmt.Errorf("--sql: %w", err)
		}
		return nil
	})
}

// openReconciled opens the store of the consumer in --consumer.
func openReconciled(ctx context.Context, c *command.CLI) (*assembly.Assembly, *policy.Consumer, error) {
	p, err := c.Load()
	if err != nil {
		return nil, nil, err
	}
	of := p.Consumer(c.Consumer)
	if of == nil {
		return nil, nil, command.UsageError("no consumer %q in %s", c.Consumer, c.Config)
	}
	if err := command.HasMarkers(p, of); err != nil {
		return nil, nil, err
	}
	a, err := c.OpenChecked(ctx, p, of.Store)
	return a, of, err
}

func reconcileFile(ctx context.Context, c *command.CLI, r *reconcileFlags) error {
	g, err := c.OpenSent(ctx, r.file, r.format, command.HasMarkers)
	if err != nil {
		return err
	}
	defer g.Close()
	src := file.Stdin(g.In, file.Options{Format: g.Format, Lane: "sent", Notice: func(what string) { fmt.Fprintln(c.Err, terminal.Line(what)) }})
	return compareSource(ctx, c, r, g.Assembly.Stores[0], g.Of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, at byte %d", d.Message.Origin.Offset)
	})
}

// reconcileTopics compares messages of topics. Each topic is read up to its current end, or up to a time in
// the flags.
func reconcileTopics(ctx context.Context, c *command.CLI, r *reconcileFlags) error {
	a, of, err := openReconciled(ctx, c)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if s := a.Policy().Source(of.From); s == nil || s.Kafka == nil {
		return command.UsageError("--topic: consumer %s reads no topics, so that the policy names no brokers for it; give --file or --sql", of.Name)
	}
	topics, err := a.Topics(of, r.topics...)
	if err != nil {
		return command.Failed(err)
	}
	defer topics.Close()
	lanes, err := topics.Lanes(ctx, kafka.Bound{Time: r.interval.from}, kafka.Bound{Time: r.interval.to})
	if err != nil {
		return command.Failed(err)
	}
	printLanes(c, r, lanes)
	src, err := topics.Source(lanes)
	if err != nil {
		return command.Failed(err)
	}
	return compareSource(ctx, c, r, a.Stores[0], of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, in %s at offset %d", d.Lane.ID, d.Message.Origin.Offset)
	})
}

// mostLanes is the maximum number of printed partitions.
const mostLanes = 5

// printLanes prints the offsets that are read from topics.
func printLanes(c *command.CLI, r *reconcileFlags, lanes []admin.ReplayLane) {
	records := int64(0)
	var parts []string
	for i, l := range lanes {
		if records += l.To - l.From; i < mostLanes {
			parts = append(parts, fmt.Sprintf("%s %d to %d", l.Lane, l.From, l.To-1))
		}
	}
	if more := len(lanes) - mostLanes; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d further partitions", more))
	}
	if len(lanes) == 0 {
		c.Remark("%s: no records there", strings.Join(r.topics, ", "))
		return
	}
	c.Remark("at most %d records are compared: offsets %s", records, strings.Join(parts, ", "))
}

// compareSource compares the messages of a source with the store. If a message has no identity, the finding
// about the message has its position in the source.
func compareSource(ctx context.Context, c *command.CLI, r *reconcileFlags, s *assembly.Store, of *policy.Consumer, src source.Source, place func(*source.Delivery) string) (err error) {
	defer func() { err = errors.Join(err, command.Failed(src.Close(context.WithoutCancel(ctx)))) }()
	return compare(ctx, c, r, s, of, func(to *reconcile.Comparison, told *findings) error {
		return to.Read(ctx, src, of.Config(), func(d *source.Delivery, _ error) error {
			return told.add(reconcile.Finding{Kind: reconcile.Unknown, ID: place(d)})
		})
	})
}

// compare calls the function read, which reads the sent messages. compare then reads the effects, and prints the
// differences.
func compare(ctx context.Context, c *command.CLI, r *reconcileFlags, s *assembly.Store, of *policy.Consumer, read func(*reconcile.Comparison, *findings) error) (err error) {
	name, err := s.KeptAs(ctx, of.Name)
	if err != nil {
		return command.Failed(err)
	}
	live := c.Live()
	comparison := &reconcile.Comparison{Marker: s.Marker, Consumer: name, Until: time.Now().Add(-r.grace), Progress: func(read, effects int64, compared float64) {
		live.Printf("%s: %d identities read, %d effects, %.0f %% compared", of.Name, read, effects, 100*compared)
	}}
	if comparison.Kept, err = command.KeptSince(ctx, s, name); err != nil {
		return command.Failed(err)
	}
	defer func() { err = errors.Join(err, command.Failed(comparison.Close())) }()
	told := &findings{limit: r.Limit, List: []reconcile.Finding{}}
	err = read(comparison, told)
	if err == nil && r.effects != "" {
		comparison.WithEffects()
		if err = s.Query(ctx, r.effects, idsOf(comparison.Effect)); err != nil {
			err = fmt.Errorf("--effects: %w", err)
		}
	}
	if err == nil {
		told.Counts, err = comparison.Compare(ctx, told.add)
	}
	live.End()
	if err != nil {
		return command.Failed(err)
	}
	return told.write(c, r)
}

// idsOf returns a function that reads database rows with an id and an optional source.
func idsOf(add func(id, source string) error) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var id, source sql.NullString
		switch len(columns) {
		case 1:
			err = rows.Scan(&id)
		case 2:
			err = rows.Scan(&id, &source)
		default:
			return fmt.Errorf("the query returns %d columns; it must return an id and, if you like, a source", len(columns))
		}
		if err == nil && !id.Valid {
			err = errors.New("a row has no id; leave such rows out, with where … is not null")
		}
		if err != nil {
			return err
		}
		return add(id.String, source.String)
	}
}
