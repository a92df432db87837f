package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/semel-go/semel/source"
)

// Stream reads messages from standard input or another reader. A Stream has no position. A nacked delivery is
// kept in memory, and is delivered again while the Stream is open.
type Stream struct {
	lane
	reader io.Reader
	from   int64 // offset of the reader's first byte in its file
	pump   *pump
}

var _ source.Source = (*Stream)(nil)

// Stdin returns a source that reads r, usually os.Stdin, to its end. The first Fetch begins to read; Stdin itself reads
// nothing. The source does not close r. The topic of deliveries is "stdin".
//
// A blocked read of standard input cannot be interrupted. So a goroutine of the Stream reads, and Fetch can return when
// its context ends. After Close, that goroutine ends with the read in progress.
func Stdin(r io.Reader, o Options) *Stream {
	s := &Stream{lane: newLane(o, "stdin", "stdin"), reader: r}
	s.input, s.endless = s, true
	return s
}

// Section returns a source that reads r to its end. The reader r is a part of a file that starts at byte from. Offsets
// of deliveries refer to the whole file. The parameter topic is the topic of deliveries. Fetch returns the errors of
// the reader.
func Section(r io.Reader, from int64, topic string, o Options) *Stream {
	s := &Stream{lane: newLane(o, topic, topic), reader: r, from: from}
	s.input, s.endless = s, true
	return s
}

// LogValue implements slog.LogValuer. The value is the name of the stream.
func (s *Stream) LogValue() slog.Value {
	return slog.GroupValue(slog.String("file", s.id.ID))
}

// Validate returns an error for an option that is not allowed. Validate does not read.
func (s *Stream) Validate() error { return s.fault }

// Close ends the stream. A waiting Fetch returns. Lines that are not acked are lost.
func (s *Stream) Close(context.Context) error {
	s.mu.Lock()
	closed, p := s.closed, s.pump
	s.closed = true
	s.mu.Unlock()
	s.wakeUp()
	if !closed && p != nil {
		p.close()
	}
	return nil
}

func (s *Stream) begin(context.Context) error {
	s.scan = newScanner(s.options.MaxLine, s.from)
	s.current = &generation{abandoned: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.pump = newPump(s.reader, s.wakeUp)
	}
	return nil
}

func (s *Stream) fill() (bool, error) {
	if s.atLastLine {
		s.finished = true
		s.reportIncompleteLine("its writer must send it again, with a line end")
		return false, nil
	}
	s.mu.Lock()
	got, ok := piece{}, false
	if !s.closed {
		got, ok = s.pump.nextPiece()
	}
	s.mu.Unlock()
	if !ok {
		return false, nil
	}
	for rest := got.bytes; len(rest) > 0; {
		n := copy(s.scan.freeSpace(), rest)
		s.scan.addFilled(n)
		rest = rest[n:]
	}
	s.atLastLine = errors.Is(got.err, io.EOF)
	if got.err != nil && !s.atLastLine {
		return false, fmt.Errorf("file %s: reading: %w", s.id.ID, got.err)
	}
	return true, nil
}

// reread would read a nacked line a second time. reread is never called, because a Stream keeps nacked lines in memory.
func (s *Stream) reread(*nackedLine) (line, error) { return line{}, io.ErrUnexpectedEOF }

func (s *Stream) nextCheck(context.Context) time.Time { return time.Time{} }

func (s *Stream) onEnd(context.Context) {}
