package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/file"
)

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
