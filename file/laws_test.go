package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
)

func TestAFileThatEndsKeepsTheLawsOfASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker { return newFileBroker(t, false) },
		Can: sourcetest.Can{
			Lanes: 1, Whole: true, Ordered: true, Reopens: true, Remembers: true,
			HandsBack: true, Delays: true, Pauses: true, Idles: true, Ends: true,
		},
		Virtual: true,
	})
}

func TestAFollowedFileKeepsTheLawsOfASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker { return newFileBroker(t, true) },
		Can: sourcetest.Can{
			Lanes: 1, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
			HandsBack: true, Delays: true, Pauses: true, Idles: true,
		},
		Virtual: true,
	})
}

func TestStandardInputKeepsTheLawsOfASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker { return newPipeBroker(t) },
		Can: sourcetest.Can{
			Lanes: 1, Live: true, Whole: true, Ordered: true,
			HandsBack: true, Delays: true, Pauses: true, Idles: true, Ends: true,
		},
		Virtual: true,
	})
}

// fileBroker publishes messages as lines of a file.
type fileBroker struct {
	path   string
	follow bool
	store  *positions
}

func newFileBroker(t testing.TB, follow bool) *fileBroker {
	t.Helper()
	b := &fileBroker{path: filepath.Join(t.TempDir(), "lines.jsonl"), follow: follow, store: newPositions()}
	write(t, b.path, "")
	return b
}

func (b *fileBroker) Publish(_ int, m *semel.Message) error {
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(envelope(m))
	return errors.Join(err, f.Close())
}

func (b *fileBroker) End() error { return nil }

func (b *fileBroker) Open() (source.Source, error) {
	s := file.Open(b.path, file.Options{Format: file.Envelope, Follow: b.follow})
	s.Info().Positions("consumer", b.store)
	return s, s.Validate()
}

// pipeBroker publishes messages to a pipe, as a shell does.
type pipeBroker struct {
	reader *io.PipeReader
	writer *io.PipeWriter
	lines  chan []byte
}

func newPipeBroker(t testing.TB) *pipeBroker {
	t.Helper()
	lines := make(chan []byte, 10_000)
	b := &pipeBroker{lines: lines}
	b.reader, b.writer = io.Pipe()
	go func() {
		for l := range lines {
			_, _ = b.writer.Write(l)
		}
		_ = b.writer.Close()
	}()
	t.Cleanup(func() {
		_ = b.reader.Close()
		if b.lines != nil {
			close(b.lines)
		}
	})
	return b
}

func (b *pipeBroker) Publish(_ int, m *semel.Message) error {
	b.lines <- envelope(m)
	return nil
}

func (b *pipeBroker) End() error {
	close(b.lines)
	b.lines = nil
	return nil
}

func (b *pipeBroker) Open() (source.Source, error) {
	return file.Stdin(b.reader, file.Options{Format: file.Envelope}), nil
}

// envelope returns a message as a line in the format Envelope.
func envelope(m *semel.Message) []byte {
	headers := map[string]string{}
	for _, h := range m.Headers {
		headers[h.Name] = string(h.Value)
	}
	names, err := json.Marshal(headers)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"key":%q,"headers":%s,"body":%s}`+"\n", m.Key, names, m.Body)
}

// positions is a PositionStore in memory.
type positions struct {
	mu    sync.Mutex // guards the fields below
	all   map[string]source.Position
	saves int
	// If set, the store returns the error fail.
	fail error
}

func newPositions() *positions { return &positions{all: map[string]source.Position{}} }

func (p *positions) LoadPosition(_ context.Context, consumer, lane string) (source.Position, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.all[consumer+"\x00"+lane]
	return found, ok, p.fail
}

func (p *positions) KeepPosition(_ context.Context, consumer, lane string, v source.Position) (source.Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := consumer + "\x00" + lane
	if _, known := p.all[key]; !known && p.fail == nil {
		p.all[key] = v
	}
	return p.all[key], p.fail
}

func (p *positions) SavePosition(_ context.Context, consumer, lane string, v source.Position) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail == nil {
		p.all[consumer+"\x00"+lane] = v
		p.saves++
	}
	return p.fail
}

func (p *positions) position(lane string) source.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all["consumer\x00"+lane]
}

func (p *positions) failWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = err
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
