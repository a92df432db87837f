package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/reconcile"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/file"
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

// hasMarkers says of a consumer that there is nothing to compare with.
func hasMarkers(p *policy.Policy, of *policy.Consumer) error {
	if p.Store(of.Store).Redis != nil {
		return usage("consumer %s keeps keys in store %s for a time, and no markers to compare with", of.Name, of.Store)
	}
	return nil
}

// keptSince is since when the markers of a consumer are all kept; zero if they always were.
func keptSince(ctx context.Context, s *assembly.Store, consumer string) (time.Time, error) {
	all, err := s.Retentions(ctx, consumer)
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0].Low, nil
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
