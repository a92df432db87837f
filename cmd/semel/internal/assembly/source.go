package assembly

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

// source makes the source of one consumer: each reads for itself.
func (a *Assembly) source(c *policy.Consumer) (source.Source, error) {
	if c.Sends() {
		return nil, nil
	}
	s := a.policy.Source(c.From)
	if s.Kafka != nil {
		return a.kafkaSource(c, s)
	}
	if s.Webhook != nil {
		return a.webhookSource(c, s)
	}
	return a.fileSource(c, s.File)
}

// NotAFile names a source of the policy that is read by a wanted consumer and
// is no file; empty if all are.
func NotAFile(p *policy.Policy, consumer string) string {
	for _, c := range p.Consumers {
		if s := p.Source(c.From); s != nil && s.File == nil && (consumer == "" || c.Name == consumer) {
			return s.Name
		}
	}
	return ""
}

func (a *Assembly) fileSource(c *policy.Consumer, f *policy.File) (source.Source, error) {
	format, err := formatOf(f.Format)
	if err != nil {
		return nil, err
	}
	o := file.Options{
		Format:  format,
		Follow:  f.Follow || c.Rebuilds(),
		MaxLine: int(f.MaxLine),
		Lane:    a.lane(f.Path),
		Notice: func(what string) {
			a.options.Logger.Warn(what, slog.String("consumer", c.Name), slog.String("source", c.From))
		},
	}
	if f.Path == shape.Stdin {
		return file.Stdin(a.options.Stdin, o), nil
	}
	src := &watched{Source: file.Open(f.Path, o), path: f.Path, fromStart: a.options.FromStart}
	if o.Follow {
		return src, nil // a file that is followed may come later
	}
	return src, src.Validate()
}

// lane names a file's position: its path below the folder of the policy, so
// that it is the same from wherever the policy is run.
func (a *Assembly) lane(path string) string {
	if path == shape.Stdin {
		return "stdin"
	}
	dir, err := filepath.Abs(a.policy.Dir)
	if err != nil {
		return path
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return full
}

func formatOf(word string) (file.Format, error) {
	formats := map[string]file.Format{"cloudevents": file.CloudEvents, "envelope": file.Envelope, "json": file.JSON}
	format, ok := formats[word]
	if !ok {
		return 0, fmt.Errorf("format %q is unknown", word)
	}
	return format, nil
}
