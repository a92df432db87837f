package rebuild

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/semel-go/semel/source"
)

// File reports how much of a file a rebuild has read.
type File struct {
	Path, Lane string
	// Positions has the position of the rebuild. Name is the consumer's name under which the position of the
	// rebuild is stored.
	Positions source.PositionStore
	Name      string
}

// Ends implements Far. The end of a file is the offset after the last complete line.
func (f *File) Ends(context.Context) (map[string]int64, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the file may be created later
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		end, err = lastLine(file, end)
	}
	return map[string]int64{f.Lane: end}, err
}

// lastLine returns the offset after the last line break before end.
func lastLine(r io.ReaderAt, end int64) (int64, error) {
	part := make([]byte, 64<<10)
	for end > 0 {
		from := max(end-int64(len(part)), 0)
		n, err := r.ReadAt(part[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndexByte(part[:n], '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Done implements Far.
func (f *File) Done(ctx context.Context) (map[string]int64, error) {
	p, _, err := f.Positions.LoadPosition(ctx, f.Name, f.Lane)
	return map[string]int64{f.Lane: p.Offset}, err
}
