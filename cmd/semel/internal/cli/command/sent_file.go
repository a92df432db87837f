package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/file"
)

// OpenInput opens a file. The name "-" means standard input.
func (c *CLI) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("file %s: it is a directory; name a file in it", name)
	}
	return os.Open(name)
}

// sentFile is an open file with messages for a consumer, together with the opened store of the consumer.
type sentFile struct {
	Of       *policy.Consumer
	Format   file.Format
	In       io.Reader
	Assembly *assembly.Assembly
	Close    func()
}

// OpenSent opens a file of messages and the store of the consumer in c.Consumer. Before OpenSent opens anything,
// OpenSent calls the function fits; if fits returns an error, OpenSent returns this error. fits may be nil.
func (c *CLI) OpenSent(ctx context.Context, name, format string, fits func(*policy.Policy, *policy.Consumer) error) (*sentFile, error) {
	p, err := c.Load()
	if err != nil {
		return nil, err
	}
	g := &sentFile{Of: p.Consumer(c.Consumer)}
	if g.Of == nil {
		return nil, UsageError("no consumer %q in %s", c.Consumer, c.Config)
	}
	if fits != nil {
		if err := fits(p, g.Of); err != nil {
			return nil, err
		}
	}
	if g.Format, err = formatOf(format); err != nil {
		return nil, err
	}
	in, err := c.OpenInput(name)
	if err != nil {
		return nil, Failed(err)
	}
	if g.Assembly, err = c.OpenChecked(ctx, p, g.Of.Store); err != nil {
		_ = in.Close() // the error does not matter, because the file was only read
		return nil, err
	}
	g.In, g.Close = in, func() { c.Close(g.Assembly); _ = in.Close() }
	return g, nil
}

func formatOf(word string) (file.Format, error) {
	for _, f := range []file.Format{file.CloudEvents, file.Envelope, file.JSON} {
		if f.String() == word {
			return f, nil
		}
	}
	return 0, UsageError("--format %q is unknown; use envelope, cloudevents or json", word)
}
