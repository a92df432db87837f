package replay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// ErrOther means that the source has changed since the replay started.
var ErrOther = errors.New("the source has changed since the replay was begun")

// hashedBytes is the number of bytes before the end of a file that are hashed. The hash shows
// whether a resumed replay reads the same file.
const hashedBytes = 4 << 10

// File is a file that is replayed.
type File struct {
	path, lane string
	options    file.Options
	opened     *os.File
}

// NewFile returns the file at path. The parameter lane is the name of the file's lane. NewFile opens nothing.
func NewFile(path, lane string, o file.Options) *File {
	return &File{path: path, lane: lane, options: o}
}

func (f *File) open() (int64, error) {
	f.Close()
	opened, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	f.opened = opened
	info, err := opened.Stat()
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("file %s: not a regular file, so it cannot be replayed", f.path)
	}
	return info.Size(), nil
}

// Plan implements Origin.
func (f *File) Plan(_ context.Context, from, to Bound) (p admin.ReplayProgress, err error) {
	size, err := f.open()
	if err != nil {
		return p, err
	}
	l := admin.ReplayLane{Lane: f.lane, From: 0, To: size}
	if err := errors.Join(f.setOffset(from, &l.From), f.setOffset(to, &l.To)); err != nil {
		return p, err
	}
	if l.From < 0 || l.To > size || l.From > l.To {
		return p, fmt.Errorf("file %s: it has %d bytes, but bytes %d to %d are requested", f.path, size, l.From, l.To)
	}
	for _, at := range []int64{l.From, l.To} {
		if begins, err := f.beginsLine(at, size); err != nil || !begins {
			return p, errors.Join(err, fmt.Errorf("file %s: no line begins at byte %d", f.path, at))
		}
	}
	l.After = l.From - 1
	l.Is, err = tailHash(f.opened, l.To)
	return admin.ReplayProgress{Range: rangeOf(fmt.Sprintf("%s, bytes %d to %d", f.lane, l.From, l.To), from, to), Lanes: []admin.ReplayLane{l}, Since: from.Time, Until: to.Time}, err
}

// setOffset stores the offset of a bound in *to, if the bound has an offset.
func (f *File) setOffset(b Bound, to *int64) error {
	for lane, at := range b.Offsets {
		if lane != "" && lane != f.lane {
			return fmt.Errorf("there is no lane %q: the file has only the lane %s", lane, f.lane)
		}
		*to = at
	}
	return nil
}

// beginsLine reports whether an offset is the start of a line or the end of the file.
func (f *File) beginsLine(at, size int64) (bool, error) {
	if at == 0 || at == size {
		return true, nil
	}
	var before [1]byte
	_, err := f.opened.ReadAt(before[:], at-1)
	return before[0] == '\n', err
}

// rangeOf describes the range of a replay and adds the times of its bounds.
func rangeOf(what string, from, to Bound) string {
	if !from.Time.IsZero() {
		what += ", from " + from.Time.UTC().Format(time.RFC3339)
	}
	if !to.Time.IsZero() {
		what += ", up to " + to.Time.UTC().Format(time.RFC3339)
	}
	return what
}

// Source implements Origin.
func (f *File) Source(_ context.Context, p admin.ReplayProgress) (source.Source, error) {
	if len(p.Lanes) != 1 || p.Lanes[0].Lane != f.lane {
		return nil, fmt.Errorf("file %s: the replay has another range: %s: %w", f.path, p.Range, ErrOther)
	}
	l := p.Lanes[0]
	size, err := f.open()
	if err == nil && size < l.To {
		err = fmt.Errorf("file %s: it has %d bytes, but had %d: %w", f.path, size, l.To, ErrOther)
	}
	is := ""
	if err == nil {
		is, err = tailHash(f.opened, l.To)
	}
	if err == nil && is != l.Is {
		err = fmt.Errorf("file %s: the bytes before byte %d have changed: %w", f.path, l.To, ErrOther)
	}
	if err != nil {
		return nil, err
	}
	from := max(l.From, l.After)
	o := f.options
	o.Lane = l.Lane
	return file.Section(&section{f.path, f.opened, from, l.To}, from, filepath.Base(f.path), o), nil
}

// Close implements Origin.
func (f *File) Close() {
	if f.opened != nil {
		_ = f.opened.Close() // the error does not matter, because the file was only read
		f.opened = nil
	}
}

// tailHash returns a hash of the last bytes before an offset.
func tailHash(f *os.File, to int64) (string, error) {
	stood := make([]byte, min(to, hashedBytes))
	if _, err := f.ReadAt(stood, to-int64(len(stood))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	sum := sha256.Sum256(stood)
	return fmt.Sprintf("%x", sum[:8]), nil
}

// section reads a part of a file.
type section struct {
	path   string
	file   *os.File
	at, to int64
}

func (s *section) Read(p []byte) (int, error) {
	left := s.to - s.at
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), left)], s.at)
	s.at += int64(n)
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("file %s: it ends at byte %d, but had %d: it was truncated: %w", s.path, s.at, s.to, ErrOther)
	}
	return 0, err
}
