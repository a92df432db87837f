package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/source"
)

// Source reads messages from one regular file, as one lane. Create a Source with Open.
type Source struct {
	lane
	path   string
	openAs func(string) (*os.File, error)
	saver  saver
	// The generations whose file is open; the last generation is the current one. Fetch and Close change files, with
	// ledger.mu held.
	files []*generation
	// The offset at which reading of the first file began; nil until the file is open. The mutex ledger.mu guards this
	// field.
	startOffset *int64
	// The field replaced is true if the path now belongs to another file. In this case, the current file is read to its
	// end before the other file.
	replaced bool
	tail     tail
}

var _ source.Source = (*Source)(nil)

// Open returns a source that reads the file at path. Open does not access the file; Validate or the first
// Fetch does. The topic of a delivery is the base name of the file, and its offset is that of the first byte
// of the line.
//
// If the file cannot be opened, the consumer logs the error and waits, as for any outage. To get an error instead, call
// Validate before Run. The binary semel calls Validate unless the file is followed.
func Open(path string, o Options) *Source {
	clean := filepath.Clean(path)
	s := &Source{
		lane: newLane(o, clean, filepath.Base(clean)), path: clean, openAs: os.Open,
		saver: saver{busy: make(chan struct{}, 1)},
	}
	s.input = s
	return s
}

// Validate returns an error for an option that is not allowed, and for a file that cannot be opened for
// reading. If the file does not exist, the error wraps fs.ErrNotExist and names the folder. If the file is not
// readable, the error wraps fs.ErrPermission. Validate closes the file again.
func (s *Source) Validate() error {
	if s.fault != nil {
		return s.fault
	}
	f, err := s.openFile()
	if err != nil {
		return err
	}
	return f.Close()
}

// openFile opens the file. Only regular files are allowed, because a read of another kind of file could block,
// and such a file has no positions.
func (s *Source) openFile() (*os.File, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, s.explain(err)
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("file %s: it is a directory; name a file in it", s.path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("file %s: it is no regular file; redirect it to standard input instead", s.path)
	}
	f, err := s.openAs(s.path)
	if err != nil {
		return nil, s.explain(err)
	}
	return f, nil
}

// LogValue implements slog.LogValuer. The value contains the path and, if the file is open, the offset at which reading
// began.
func (s *Source) LogValue() slog.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := []slog.Attr{slog.String("file", s.path)}
	if s.startOffset != nil {
		about = append(about, slog.Int64("from", *s.startOffset))
	}
	return slog.GroupValue(about...)
}

func (s *Source) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file %s: there is none%s; %s: %w", s.path, s.folderHint(), s.missingFileAdvice(), err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("file %s: no permission to read it; allow this user to read the file and enter its folders: %w", s.path, err)
	}
	return fmt.Errorf("file %s: cannot be opened; correct the path: %w", s.path, err)
}

// folderHint returns a text with the folder that a relative path refers to; empty if the working folder is
// unknown.
func (s *Source) folderHint() string {
	full, err := filepath.Abs(s.path)
	if err != nil {
		return ""
	}
	return " in " + filepath.Dir(full)
}

// missingFileAdvice returns advice for an operator whose file does not exist.
func (s *Source) missingFileAdvice() string {
	if s.options.Follow {
		return "create it or correct the path"
	}
	return "create it, correct the path, or wait for it with follow: true"
}

func (s *Source) begin(ctx context.Context) error {
	f, err := s.openFile()
	if err != nil {
		return err
	}
	at, err := s.load(ctx, f)
	if err != nil {
		_ = f.Close() // the file was only read
		return err
	}
	s.install(f, at)
	return nil
}

// install makes f the current generation, and starts reading at an offset.
func (s *Source) install(f *os.File, at int64) {
	g := &generation{file: f, track: tracker{read: at}}
	if s.current != nil {
		g.number = s.current.number + 1
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.files = append(s.files, g)
	}
	if s.startOffset == nil {
		s.startOffset = &at
	}
	s.mu.Unlock()
	if closed {
		_ = f.Close() // the file was only read
	}
	s.current = g
	s.scan = newScanner(s.options.MaxLine, at)
	s.replaced, s.atLastLine, s.tail = false, false, tail{}
}

func (s *Source) fill() (bool, error) {
	if s.options.Follow && !s.atLastLine && s.tail.isAt(s.scan.readOffset()) && !s.tail.isUnchanged(s.current.file) {
		return s.restart()
	}
	n, err := s.current.file.ReadAt(s.scan.freeSpace(), s.scan.readOffset())
	s.scan.addFilled(n)
	switch {
	case n > 0:
		// The file has grown, so the line that seemed to be the last line may continue.
		s.atLastLine = false
		return true, nil
	case errors.Is(err, io.EOF):
		return s.atEnd()
	default:
		return false, fmt.Errorf("file %s: reading: %w", s.path, err)
	}
}

// reread reads a line once more, from the file of the line's generation.
func (s *Source) reread(b *nackedLine) (line, error) {
	scan := newScanner(s.options.MaxLine, b.start)
	scan.piece = int(min(chunk, b.end-b.start))
	section := io.NewSectionReader(b.generation.file, b.start, b.end-b.start)
	for final := false; ; {
		if found, ok := scan.nextLine(final); ok {
			return found, nil
		}
		n, err := section.Read(scan.freeSpace())
		scan.addFilled(n)
		if n == 0 && final {
			return line{}, fmt.Errorf("file %s: the line at byte %d cannot be read again: %w", s.path, b.start, io.ErrUnexpectedEOF)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return line{}, fmt.Errorf("file %s: reading the line at byte %d again: %w", s.path, b.start, err)
		}
		final = n == 0
	}
}

func (s *Source) nextCheck(ctx context.Context) time.Time {
	s.closeRead()
	s.saveIfDue(ctx)
	if s.finished {
		return time.Now().Add(saveEvery)
	}
	return time.Now().Add(s.options.Poll)
}

// closeRead closes replaced files whose lines are all acked.
func (s *Source) closeRead() {
	var done []*generation
	s.mu.Lock()
	for len(s.files) > 1 && s.files[0].track.countUnsettled() == 0 {
		done = append(done, s.files[0])
		s.files = s.files[1:]
	}
	s.mu.Unlock()
	for _, g := range done {
		_ = g.file.Close() // the file was only read
	}
}

func (s *Source) onEnd(ctx context.Context) { _ = s.save(ctx) } // Close tries again and returns the error

// Settle implements source.Source, and saves the position at most once a second. If the position cannot be saved, the
// acks and nacks still count, and the next Settle tries to save the position again. If the process ends before the
// position is saved, lines are delivered again after the restart.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	left, err := s.lane.Settle(ctx, all)
	s.saveIfDue(ctx)
	return left, err
}

// Close saves the position and closes the file. A waiting Fetch returns. An error means that the position was
// not saved, so that lines are delivered again after a restart.
func (s *Source) Close(ctx context.Context) error {
	s.mu.Lock()
	closed, files := s.closed, s.files
	s.closed = true
	s.mu.Unlock()
	s.wakeUp()
	if closed {
		return nil
	}
	err := s.save(ctx)
	for _, g := range files {
		_ = g.file.Close() // the file was only read
	}
	return err
}
