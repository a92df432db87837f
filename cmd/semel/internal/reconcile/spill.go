package reconcile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
)

// parts is the number of temporary files. With ten million ids, each file has about 40,000 ids.
const parts = 256

// record is a sent identity or an effect.
type record struct {
	effect bool
	id     string
	// source is the source of the identity. For an effect, source is "" if the query returns no source.
	source string
	// previousID and previousSource are the previous identity; "" if the message has none.
	previousID, previousSource string

	found Outcome
	at    int64 // in Unix milliseconds; 0 if unknown
}

// spill writes records to temporary files. All records of an id are in the same file.
type spill struct {
	folder  string
	files   [parts]*os.File
	writers [parts]*bufio.Writer
}

// previousFlag is a flag in the encoding of a record with a previous identity.
const previousFlag = 1 << 7

func newSpill() (s *spill, err error) {
	s = &spill{}
	if s.folder, err = os.MkdirTemp("", "semel-reconcile"); err != nil {
		return nil, err
	}
	for i := range s.files {
		if s.files[i], err = os.Create(filepath.Join(s.folder, fmt.Sprint(i))); err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.writers[i] = bufio.NewWriterSize(s.files[i], 8<<10)
	}
	// The names of open files are not needed. Removing the names now means that a killed process leaves no
	// files. On systems that cannot remove open files, the function close removes the files.
	_ = os.RemoveAll(s.folder)
	return s, nil
}

func (s *spill) close() error {
	var errs []error
	for _, f := range s.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

func (s *spill) add(r record) error {
	h := fnv.New64a()
	_, _ = io.WriteString(h, r.id)
	kind := byte(r.found) << 1
	if r.effect {
		kind |= 1
	}
	texts := []string{r.id, r.source}
	if r.previousID != "" {
		kind, texts = kind|previousFlag, append(texts, r.previousID, r.previousSource)
	}
	b := append(make([]byte, 0, 32+len(r.id)+len(r.source)), kind)
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	_, err := s.writers[h.Sum64()%parts].Write(binary.AppendVarint(b, r.at))
	return err
}

// forEach calls the function do for every record of one file.
func (s *spill) forEach(part int, do func(record)) error {
	if err := s.writers[part].Flush(); err != nil {
		return err
	}
	if _, err := s.files[part].Seek(0, io.SeekStart); err != nil {
		return err
	}
	from := bufio.NewReaderSize(s.files[part], 64<<10)
	for {
		kind, err := from.ReadByte()
		if err == io.EOF {
			return nil
		}
		r := record{effect: kind&1 == 1, found: Outcome(kind &^ previousFlag >> 1)}
		texts := []*string{&r.id, &r.source}
		if kind&previousFlag != 0 {
			texts = append(texts, &r.previousID, &r.previousSource)
		}
		for _, text := range texts {
			if err == nil {
				*text, err = readText(from)
			}
		}
		if err == nil {
			r.at, err = binary.ReadVarint(from)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.files[part].Name(), err)
		}
		do(r)
	}
}

func readText(from *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(from)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(from, b)
	return string(b), err
}
