package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/file"
)

// ErrOther: what is to be read is not what it was when the replay was begun.
var ErrOther = errors.New("it is not what it was when the replay was begun")

// checked is how much of a file before its end is hashed, to recognise it.
const checked = 4 << 10

// File is a part of a file that is replayed.
type File struct {
	file *os.File
	lane contract.ReplayLane
	path string
}

// OpenFile opens a file from one byte to another; to < 0: to its end as it stands now.
func OpenFile(path, lane string, from, to int64) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	part, err := partOf(f, path, lane, from, to)
	if err != nil {
		_ = f.Close() // it was only read
	}
	return part, err
}

func partOf(f *os.File, path, lane string, from, to int64) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("file %s: it is no regular file, and cannot be read again", path)
	}
	if to < 0 {
		to = info.Size()
	}
	if from < 0 || to > info.Size() || from > to {
		return nil, fmt.Errorf("file %s: it has %d bytes, and bytes %d to %d are asked for", path, info.Size(), from, to)
	}
	is, err := recognised(f, to)
	return &File{f, contract.ReplayLane{Lane: lane, Is: is, From: from, To: to, After: from - 1}, path}, err
}

// recognised is a hash of what stands before a byte.
func recognised(f *os.File, to int64) (string, error) {
	stood := make([]byte, min(to, checked))
	if _, err := f.ReadAt(stood, to-int64(len(stood))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	sum := sha256.Sum256(stood)
	return fmt.Sprintf("%x", sum[:8]), nil
}

// ReopenFile opens a part that a replay has begun with; ErrOther: the file is another one, or
// shorter.
func ReopenFile(path string, l contract.ReplayLane) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < l.To {
		err = fmt.Errorf("file %s: it has %d bytes, and had %d: %w", path, info.Size(), l.To, ErrOther)
	}
	is := ""
	if err == nil {
		is, err = recognised(f, l.To)
	}
	if err == nil && is != l.Is {
		err = fmt.Errorf("file %s: other bytes stand before byte %d: %w", path, l.To, ErrOther)
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return &File{f, l, path}, nil
}

// Lane is what is replayed of it.
func (f *File) Lane() contract.ReplayLane { return f.lane }

// Source reads it, from where the replay has come to.
func (f *File) Source(o file.Options) contract.Source {
	from := max(f.lane.From, f.lane.After)
	o.Lane = f.lane.Lane
	return file.Section(&section{f, from}, from, filepath.Base(f.path), o)
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// section reads a file up to a byte that it had.
type section struct {
	of *File
	at int64
}

func (s *section) Read(p []byte) (int, error) {
	left := s.of.lane.To - s.at
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := s.of.file.ReadAt(p[:min(int64(len(p)), left)], s.at)
	s.at += int64(n)
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("file %s: it ends at byte %d, and had %d: it was truncated: %w", s.of.path, s.at, s.of.lane.To, ErrOther)
	}
	return 0, err
}
