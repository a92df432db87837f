package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// atEnd is called when the current file has no further bytes. atEnd reports whether the caller must read the file
// again, or ask the scanner again.
func (s *Source) atEnd() (bool, error) {
	switch {
	case !s.options.Follow:
		more := !s.atLastLine
		s.finished = s.atLastLine
		s.atLastLine = true
		if s.finished {
			s.reportIncompleteLine("if a program is still writing the file, read the file again when it has finished; otherwise add the line end")
		}
		return more, nil
	case s.atLastLine:
		return s.switchFile()
	case s.replaced:
		s.atLastLine = true // the writer will not write the missing line end
		return true, nil
	}
	return s.checkReplaced()
}

// checkReplaced checks whether the path now belongs to another file. If the path belongs to another file, the old file
// is read once more, because its writer may have written until the file was replaced.
func (s *Source) checkReplaced() (bool, error) {
	s.tail.take(s.current.file, s.scan.readOffset())
	there, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the old file was renamed and the new file does not exist yet
	}
	if err != nil {
		return false, s.explain(err)
	}
	here, err := s.current.file.Stat()
	if err != nil {
		return false, s.explain(err)
	}
	s.replaced = !os.SameFile(there, here)
	return s.replaced, nil
}

// switchFile switches from a replaced file, after its end was read, to the file that has the path now.
func (s *Source) switchFile() (bool, error) {
	f, err := s.openFile()
	if err != nil {
		return false, err
	}
	s.reportIncompleteLine("the line is in the file that was replaced, which is not read again; if the line is complete, write it into the new file")
	s.install(f, 0)
	s.options.Notice(fmt.Sprintf("file %s: was replaced; the new file is read from its start", s.path))
	return true, nil
}

// restart reads a truncated or rewritten file from its start.
func (s *Source) restart() (bool, error) {
	old := s.current
	f, err := s.openFile()
	if err != nil {
		return false, err
	}
	dropped := s.abandon(old)
	s.install(f, 0)
	text := fmt.Sprintf("file %s: was truncated or written anew; it is read from its start", s.path)
	if dropped > 0 {
		text += fmt.Sprintf("; %d lines that were handed back are gone with what was cut off", dropped)
	}
	s.options.Notice(text)
	return true, nil
}

// tail contains the bytes before an offset of a file. At the next check, the bytes of the tail show whether the file
// was truncated. The size alone does not show a truncation, because the file may have grown again.
type tail struct {
	offset int64
	bytes  []byte
}

// isAt reports whether the tail has the bytes before this offset.
func (t *tail) isAt(at int64) bool { return t.bytes != nil && t.offset == at }

// take reads the bytes before an offset, unless the tail has them.
func (t *tail) take(f *os.File, at int64) {
	if t.isAt(at) {
		return
	}
	t.offset, t.bytes = at, readBefore(f, at)
}

// isUnchanged reports whether the file still has the bytes of the tail at the tail's offset.
func (t *tail) isUnchanged(f *os.File) bool {
	now := readBefore(f, t.offset)
	return now != nil && bytes.Equal(now, t.bytes)
}

// readBefore reads the bytes before an offset; nil if the file does not have them.
func readBefore(f *os.File, at int64) []byte {
	b := make([]byte, min(checked, at))
	if n, _ := f.ReadAt(b, at-int64(len(b))); n < len(b) {
		return nil
	}
	return b
}
