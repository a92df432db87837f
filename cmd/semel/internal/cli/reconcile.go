package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
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

// reconciling is what to compare.
type reconciling struct {
	listing
	file, format, query, effects string
	topics                       []string
	from, to                     string
	cut                          span
	grace                        time.Duration
}

// span is from when to when; zero where nobody says.
type span struct{ from, to time.Time }

func reconcileCommand(c *common) *cobra.Command {
	r := &reconciling{}
	cmd := &cobra.Command{
		Use:   "reconcile --consumer NAME (--file F | --topic T | --sql QUERY)",
		Short: "Compare what was sent with what was applied",
		Long: `Compares what was sent, which are the messages of a file, the records of
topics, or the ids that a query of the consumer's store returns, with what
the store has of their identities, and with --effects with the effects
that a query finds: one row for each time that an effect is there, with the
message's id and, if you like, its source as a second column.
  missing         it was sent, and the store knows nothing of it
  doubled         its effect is there more than once
  without effect  it is marked as applied, and its effect is not there
  unmarked        its effect is there, and it is not marked as applied
  unknown         its marker may have been removed, or it has no identity
The consumer may run meanwhile: what was not there is looked up again at the
end, and what was sent within --grace is not missing. What waits or is set
aside is tallied, and no finding. What is marked under a former identity of
the policy is not missing. Topics are read up to where they end now, without
a group. Nothing is changed.
Exit codes: 0 all is as it should be, 4 something is not.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(r.check(c, cmd), r.fits(c)); err != nil {
				return err
			}
			return c.reconcile(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.file, "file", "", "a file of what was sent, with a message a line; - reads standard input")
	cmd.Flags().StringVar(&r.format, "format", file.CloudEvents.String(), "what a line of the file is: envelope, cloudevents or json")
	cmd.Flags().StringArrayVar(&r.topics, "topic", nil, "a topic of what was sent, on the brokers of the consumer's source; may be given several times")
	cmd.Flags().StringVar(&r.from, "from", "", "of topics, from this time on: 2006-01-02, an RFC 3339 time, or 24h (ago)")
	cmd.Flags().StringVar(&r.to, "to", "", "of topics, what is before this time")
	cmd.Flags().StringVar(&r.query, "sql", "", "a query of the consumer's store that returns the id, and perhaps the source, of each message that was sent")
	cmd.Flags().StringVar(&r.effects, "effects", "", "a query of the consumer's store that returns an id for each effect")
	cmd.Flags().DurationVar(&r.grace, "grace", time.Minute, "how long what was sent may be on its way")
	r.add(c, cmd, 100, "findings")
	refuseEmpty(cmd, "consumer", "file", "format", "topic", "from", "to", "sql", "effects")
	return c.withConfig(c.withConsumer(cmd, "the consumer"))
}

// fits says what is wrong with the flags.
func (r *reconciling) fits(c *common) (err error) {
	given := 0
	for _, is := range []bool{r.file != "", len(r.topics) > 0, r.query != ""} {
		if is {
			given++
		}
	}
	switch {
	case c.consumer == "":
		return usage("--consumer is missing: say whose messages these are")
	case given == 0:
		return usage("--file is missing: name a file with a message a line, or - for standard input; or give --topic, or --sql")
	case given > 1:
		return usage("give one of --file, --topic and --sql: each says what was sent")
	case r.grace < 0:
		return usage("--grace %v: give how long a message may be on its way, as 1m", r.grace)
	case len(r.topics) == 0 && r.from+r.to != "":
		return usage("--from and --to are of --topic: choose what the file has, or write it into the query")
	}
	for flag, at := range map[string]*time.Time{"from": &r.cut.from, "to": &r.cut.to} {
		if text := map[string]string{"from": r.from, "to": r.to}[flag]; text != "" {
			if *at, err = timeOf(flag, text, time.Now); err != nil {
				return err
			}
		}
	}
	if !r.cut.from.IsZero() && !r.cut.to.IsZero() && !r.cut.from.Before(r.cut.to) {
		return usage("--from %s is not earlier than --to %s: nothing lies between", r.from, r.to)
	}
	return nil
}

// findings are those that are shown, with how many there are of each kind.
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

func (f *findings) write(c *common, r *reconciling) error {
	if c.json {
		if err := c.writeJSON(f); err != nil {
			return err
		}
	} else if err := f.table(c, r); err != nil {
		return failed(err)
	}
	if f.Found() == 0 {
		return nil
	}
	return found(fmt.Errorf("reconcile: %s", f.found()))
}

func (f *findings) table(c *common, r *reconciling) error {
	if len(f.List) > 0 {
		type view = reconcile.Finding
		if err := printTable(c, &r.listing, f.List, output.Fixed(
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
	_, err := fmt.Fprintln(c.Out, terminal.Wrap(f.summary(), r.columns(c)))
	return err
}

// summary is what became of what was sent.
func (f *findings) summary() string {
	parts := some([]tallied{{f.Applied, "applied"}, {f.Waiting, "waiting"}, {f.Aside, "set aside"}, {f.Late, "sent within the grace"}})
	text := fmt.Sprintf("%d identities were sent", f.Sent)
	if all := append(parts, f.kinds()...); len(all) > 0 {
		text += ": " + strings.Join(all, ", ")
	}
	for _, beside := range some([]tallied{{f.Unusable, "messages have no identity"}, {f.Skipped, "messages are not the consumer's"}, {f.Others, "other ids have effects"}}) {
		text += "; " + beside
	}
	return text
}

func (f *findings) kinds() []string {
	return some([]tallied{{f.Missing, string(reconcile.Missing)}, {f.Doubled, string(reconcile.Doubled)}, {f.WithoutEffect, string(reconcile.WithoutEffect)},
		{f.Unmarked, string(reconcile.Unmarked)}, {f.Unknown, string(reconcile.Unknown)}})
}

// found is how many there are of each kind.
func (f *findings) found() string {
	return strings.Join(append(f.kinds(), some([]tallied{{f.Unusable, "without an identity"}})...), ", ")
}

// tallied is so many of something.
type tallied struct {
	n    int64
	what string
}

// some are those of which there are any.
func some(all []tallied) (texts []string) {
	for _, one := range all {
		if one.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return texts
}

// reconcile compares, and prints what it finds.
func (c *common) reconcile(ctx context.Context, r *reconciling) (err error) {
	switch {
	case r.file != "":
		return c.reconcileFile(ctx, r)
	case len(r.topics) > 0:
		return c.reconcileTopics(ctx, r)
	}
	a, of, err := c.openReconciled(ctx)
	if err != nil {
		return err
	}
	defer c.close(a)
	s := a.Stores[0]
	return c.compare(ctx, r, s, of, func(to *reconcile.Comparison, _ *findings) error {
		err := to.SentBy(ctx, func(add func(id, source string) error) error { return s.Query(ctx, r.query, idsOf(add)) })
		if err != nil {
			return fmt.Errorf("--sql: %w", err)
		}
		return nil
	})
}

// openReconciled opens the store of the consumer of the flags.
func (c *common) openReconciled(ctx context.Context) (*assembly.Assembly, *policy.Consumer, error) {
	p, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	of := p.Consumer(c.consumer)
	if of == nil {
		return nil, nil, usage("no consumer %q in %s", c.consumer, c.config)
	}
	if err := hasMarkers(p, of); err != nil {
		return nil, nil, err
	}
	a, err := c.openChecked(ctx, p, of.Store)
	return a, of, err
}

func (c *common) reconcileFile(ctx context.Context, r *reconciling) error {
	g, err := c.openSent(ctx, r.file, r.format, hasMarkers)
	if err != nil {
		return err
	}
	defer g.close()
	src := file.Stdin(g.in, file.Options{Format: g.format, Lane: "sent", Notice: func(what string) { fmt.Fprintln(c.Err, terminal.Line(what)) }})
	return c.compareSource(ctx, r, g.assembly.Stores[0], g.of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, at byte %d", d.Message.Origin.Offset)
	})
}

// reconcileTopics reads topics up to their ends as they stand now, or up to a time.
func (c *common) reconcileTopics(ctx context.Context, r *reconciling) error {
	a, of, err := c.openReconciled(ctx)
	if err != nil {
		return err
	}
	defer c.close(a)
	if s := a.Policy().Source(of.From); s == nil || s.Kafka == nil {
		return usage("--topic: consumer %s reads no topics, so that the policy names no brokers for it; give --file or --sql", of.Name)
	}
	topics, err := a.Topics(of, r.topics...)
	if err != nil {
		return failed(err)
	}
	defer topics.Close()
	lanes, err := topics.Lanes(ctx, kafka.Bound{Time: r.cut.from}, kafka.Bound{Time: r.cut.to})
	if err != nil {
		return failed(err)
	}
	c.printLanes(r, lanes)
	src, err := topics.Source(lanes)
	if err != nil {
		return failed(err)
	}
	return c.compareSource(ctx, r, a.Stores[0], of, src, func(d *source.Delivery) string {
		return fmt.Sprintf("no identity, in %s at offset %d", d.Lane.ID, d.Message.Origin.Offset)
	})
}

// mostLanes is how many partitions are named.
const mostLanes = 5

// printLanes prints which offsets of topics are read.
func (c *common) printLanes(r *reconciling, lanes []admin.ReplayLane) {
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
		c.remark("%s: no records there", strings.Join(r.topics, ", "))
		return
	}
	c.remark("at most %d records are compared: offsets %s", records, strings.Join(parts, ", "))
}

// compareSource compares with what a source has, which names a message without an identity.
func (c *common) compareSource(ctx context.Context, r *reconciling, s *assembly.Store, of *policy.Consumer, src source.Source, place func(*source.Delivery) string) (err error) {
	defer func() { err = errors.Join(err, failed(src.Close(context.WithoutCancel(ctx)))) }()
	return c.compare(ctx, r, s, of, func(to *reconcile.Comparison, told *findings) error {
		return to.Read(ctx, src, of.Config(), func(d *source.Delivery, _ error) error {
			return told.add(reconcile.Finding{Kind: reconcile.Unknown, ID: place(d)})
		})
	})
}

// compare reads what was sent, then the effects, and tells of what does not fit.
func (c *common) compare(ctx context.Context, r *reconciling, s *assembly.Store, of *policy.Consumer, read func(*reconcile.Comparison, *findings) error) (err error) {
	name, err := s.KeptAs(ctx, of.Name)
	if err != nil {
		return failed(err)
	}
	live := c.liveLine()
	comparison := &reconcile.Comparison{Marker: s.Marker, Consumer: name, Until: time.Now().Add(-r.grace), Progress: func(read, effects int64, compared float64) {
		live.printf("%s: %d identities read, %d effects, %.0f %% compared", of.Name, read, effects, 100*compared)
	}}
	if comparison.Kept, err = keptSince(ctx, s, name); err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, failed(comparison.Close())) }()
	told := &findings{limit: r.limit, List: []reconcile.Finding{}}
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
	live.end()
	if err != nil {
		return failed(err)
	}
	return told.write(c, r)
}

// idsOf takes rows of an id, and perhaps a source.
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
