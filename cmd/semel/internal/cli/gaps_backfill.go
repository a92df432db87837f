package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// backfill is what to give a consumer from a file.
type backfill struct{ file, format, who, why string }

func gapsBackfill(c *common) *cobra.Command {
	var b backfill
	cmd := &cobra.Command{
		Use:   "backfill --consumer NAME --file FILE --because TEXT",
		Short: "Give a consumer what is missing, from a file",
		Long: `Give a consumer messages from a file, as if its source had delivered them:
what has taken effect already is a duplicate, what fills a gap frees what waits
for it, and what cannot be applied is set aside. The consumer's own source is
not touched, and the consumer may run meanwhile.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.consumer == "":
				return usage("--consumer is missing: say whose messages these are")
			case b.file == "":
				return usage("--file is missing: name a file with a message a line, or - for standard input")
			}
			if err := recorded(&b.who, b.why, false); err != nil {
				return err
			}
			return c.backfill(cmd.Context(), b)
		},
	}
	cmd.Flags().StringVar(&b.file, "file", "", "the file, with a message a line; - reads standard input")
	cmd.Flags().StringVar(&b.format, "format", file.Envelope.String(), "what a line is: envelope, cloudevents or json")
	recordFlags(cmd, &b.who, &b.why)
	refuseEmpty(cmd, "consumer", "file", "format")
	return c.withConfig(c.withConsumer(cmd, "the consumer"))
}

// backfill records what is about to be done and does it, and prints what became of the
// messages.
func (c *common) backfill(ctx context.Context, b backfill) error {
	g, err := c.openSent(ctx, b.file, b.format, nil)
	if err != nil {
		return err
	}
	defer g.close()
	a, of := g.assembly, g.of
	reader, err := a.Reader(ctx, of.Name, file.Stdin(g.in, file.Options{Format: g.format, Lane: "backfill"}))
	if err != nil {
		return failed(err)
	}
	if err := c.recordBackfill(ctx, a, of, b); err != nil {
		return failed(err)
	}
	summary, err := running.All(ctx, map[string]running.Consumer{of.Name: reader}, nil, nil)
	if c.json {
		err = errors.Join(failed(err), writeJSON(c.Out, summary))
	} else {
		err = errors.Join(failed(err), summary.Write(c.Out))
	}
	counts := summary.Consumers[of.Name]
	if aside := counts.Parked + counts.Conflicts + counts.DeadLettered; err == nil && aside > 0 {
		err = failed(fmt.Errorf("backfill: %d of %d messages were set aside; semel inbox ls shows them", aside, counts.Deliveries))
	}
	return err
}

// recordBackfill writes down who gives what before any of it has an effect.
func (c *common) recordBackfill(ctx context.Context, a *assembly.Assembly, of *policy.Consumer, b backfill) error {
	for _, s := range a.Stores {
		if s.Name() == of.Store {
			return s.Record(ctx, store.Act{Verb: "backfill", Who: b.who, Why: fmt.Sprintf("consumer %s, file %s: %s", of.Name, b.file, b.why)})
		}
	}
	return nil
}

// sentFile is a file of messages for a consumer, and the store of that.
type sentFile struct {
	of       *policy.Consumer
	format   file.Format
	in       io.Reader
	assembly *assembly.Assembly
	close    func()
}

// openSent opens a file for the consumer of the flags, and its store. fits, if not nil, says
// what is in the way before anything is opened.
func (c *common) openSent(ctx context.Context, name, format string, fits func(*policy.Policy, *policy.Consumer) error) (*sentFile, error) {
	p, err := c.load()
	if err != nil {
		return nil, err
	}
	g := &sentFile{of: p.Consumer(c.consumer)}
	if g.of == nil {
		return nil, usage("no consumer %q in %s", c.consumer, c.config)
	}
	if fits != nil {
		if err := fits(p, g.of); err != nil {
			return nil, err
		}
	}
	if g.format, err = formatOf(format); err != nil {
		return nil, err
	}
	in, err := c.input(name)
	if err != nil {
		return nil, failed(err)
	}
	if g.assembly, err = c.openChecked(ctx, p, g.of.Store); err != nil {
		_ = in.Close() // it was only read
		return nil, err
	}
	g.in, g.close = in, func() { c.close(g.assembly); _ = in.Close() }
	return g, nil
}

func formatOf(word string) (file.Format, error) {
	for _, f := range []file.Format{file.CloudEvents, file.Envelope, file.JSON} {
		if f.String() == word {
			return f, nil
		}
	}
	return 0, usage("--format %q is unknown; use envelope, cloudevents or json", word)
}

// input is a file, or standard input.
func (c *common) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("file %s: it is a directory; name a file in it", name)
	}
	return os.Open(name)
}
