package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/reconcile"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/file"
	"github.com/spf13/cobra"
)

// reconciling is what to compare.
type reconciling struct {
	listing
	file, format, effects string
	grace                 time.Duration
}

func reconcileCommand(c *common) *cobra.Command {
	r := &reconciling{}
	cmd := &cobra.Command{
		Use:   "reconcile --consumer NAME --file FILE",
		Short: "Compare what was sent with what was applied",
		Long: `Compares the messages of a file, which are what was sent, with what the
consumer's store has of their identities, and with --effects with the effects
that a query finds: one row for each time that an effect is there, with the
message's id and, if you like, its source as a second column.

  missing         it was sent, and the store knows nothing of it
  doubled         its effect is there more than once
  without effect  it is marked as applied, and its effect is not there
  unmarked        its effect is there, and it is not marked as applied
  unknown         its marker may have been removed, or it has no identity

The consumer may run meanwhile: what was not there is looked up again at the
end, and what was sent within --grace is not missing. What waits or is set
aside is tallied, and no finding. Nothing is changed.

Exit codes: 0 all is as it should be, 4 something is not.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch err := r.check(c, cmd); {
			case err != nil:
				return err
			case c.consumer == "":
				return usage("--consumer is missing: say whose messages these are")
			case r.file == "":
				return usage("--file is missing: name a file with a message a line, or - for standard input")
			case r.grace < 0:
				return usage("--grace %v: give how long a message may be on its way, as 1m", r.grace)
			}
			return c.reconcile(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.file, "file", "", "the file, with a message a line; - reads standard input")
	cmd.Flags().StringVar(&r.format, "format", file.CloudEvents.String(), "what a line is: envelope, cloudevents or json")
	cmd.Flags().StringVar(&r.effects, "effects", "", "a query of the consumer's store that returns an id for each effect")
	cmd.Flags().DurationVar(&r.grace, "grace", time.Minute, "how long what was sent may be on its way")
	r.add(c, cmd, 100, "findings")
	refuseEmpty(cmd, "consumer", "file", "format", "effects")
	return c.withConfig(c.withConsumer(cmd, "the consumer"))
}

// reconcile compares, and prints what it finds.
func (c *common) reconcile(ctx context.Context, r *reconciling) (err error) {
	g, err := c.openSent(ctx, r.file, r.format, hasMarkers)
	if err != nil {
		return err
	}
	defer g.close()
	source := file.Stdin(g.in, file.Options{Format: g.format, Lane: "sent", Notice: func(what string) { fmt.Fprintln(c.Err, terminal.Line(what)) }})
	defer func() { err = errors.Join(err, failed(source.Close(context.WithoutCancel(ctx)))) }()
	return c.compare(ctx, r, g.assembly.Stores[0], g.of, source)
}

// hasMarkers says of a consumer that there is nothing to compare with.
func hasMarkers(p *policy.Policy, of *policy.Consumer) error {
	if p.Store(of.Store).Redis != nil {
		return usage("consumer %s keeps keys in store %s for a time, and no markers to compare with", of.Name, of.Store)
	}
	return nil
}

// compare reads what was sent, then the effects, and tells of what does not fit.
func (c *common) compare(ctx context.Context, r *reconciling, s *assembly.Store, of *policy.Consumer, source contract.Source) (err error) {
	name, err := s.KeptAs(ctx, of.Name)
	if err != nil {
		return failed(err)
	}
	comparison := &reconcile.Comparison{Marker: s.Marker, Consumer: name, Until: time.Now().Add(-r.grace)}
	if comparison.Kept, err = keptSince(ctx, s, name); err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, failed(comparison.Close())) }()
	told := &findings{limit: r.limit, List: []reconcile.Finding{}}
	if err := comparison.Read(ctx, source, of.Config(), told.unusable); err != nil {
		return failed(err)
	}
	if r.effects != "" {
		comparison.WithEffects()
		if err := s.Query(ctx, r.effects, effectOf(comparison)); err != nil {
			return failed(fmt.Errorf("--effects: %w", err))
		}
	}
	told.Counts, err = comparison.Compare(ctx, told.add)
	if err != nil {
		return failed(err)
	}
	return told.write(c, r)
}

// keptSince is since when the markers of a consumer are all kept; zero if they always were.
func keptSince(ctx context.Context, s *assembly.Store, consumer string) (time.Time, error) {
	all, err := s.Retentions(ctx, consumer)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Low, nil
}

// effectOf takes rows of an id, and perhaps a source.
func effectOf(to *reconcile.Comparison) func(*sql.Rows) error {
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
		return to.Effect(id.String, source.String)
	}
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

// unusable shows a message without an identity by where it stands.
func (f *findings) unusable(d *contract.Delivery, _ error) error {
	return f.add(reconcile.Finding{Kind: reconcile.Unknown, ID: fmt.Sprintf("no identity, at byte %d", d.Message.Origin.Offset)})
}

func (f *findings) write(c *common, r *reconciling) error {
	if c.json {
		if err := writeJSON(c.Out, f); err != nil {
			return err
		}
	} else if err := f.table(c, r); err != nil {
		return failed(err)
	}
	if f.Found() == 0 {
		return nil
	}
	return &failure{exitFound, fmt.Errorf("reconcile: %s", f.found())}
}

func (f *findings) table(c *common, r *reconciling) error {
	if len(f.List) > 0 {
		t := terminal.Table{Columns: []terminal.Column{{Title: "WHAT"}, {Title: "ID", Flexible: true}, {Title: "SOURCE", Flexible: true}, {Title: "SENT"}, {Title: "EFFECTS"}}}
		for _, one := range f.List {
			sent := ""
			if !one.Sent.IsZero() {
				sent = one.Sent.Format(time.RFC3339)
			}
			t.Add(string(one.Kind), one.ID, one.Source, sent, fmt.Sprint(one.Effects))
		}
		if err := t.Write(c.Out, r.columns(c)); err != nil {
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
