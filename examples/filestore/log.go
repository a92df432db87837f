package filestore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A file starts with magic, which names the format version. Records follow. A record has the length of the
// payload, a checksum of the payload, a checksum of length and first checksum, and the payload in JSON.
const (
	magic      = "filestore 1\n"
	headLength = 12
	maxPayload = 1 << 30
)

// errTorn means that a crash has cut off the last record.
var errTorn = errors.New("the last record is cut off")

var checksums = crc32.MakeTable(crc32.Castagnoli)

// record is the data that one commit, or one call of Scope, writes.
type record struct {
	Scopes []scopeRecord `json:"scopes,omitempty"`
	Marks  []markRecord  `json:"marks,omitempty"`
	Values []valueRecord `json:"values,omitempty"`
}

// Names and ids are stored as bytes, because JSON would change a text that is not valid UTF-8.

type scopeRecord struct {
	Number     int64  `json:"number"`
	Consumer   []byte `json:"consumer"`
	Source     []byte `json:"source"`
	Generation int64  `json:"generation"`
}

type markRecord struct {
	Scope   int64    `json:"scope"`
	ID      []byte   `json:"id"`
	Outcome int64    `json:"outcome"`
	Rule    uint8    `json:"rule,omitempty"` // the rule of the fingerprint
	Sum     [16]byte `json:"sum"`
}

type valueRecord struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
	Gone  bool   `json:"gone,omitempty"`
}

func (r *record) empty() bool {
	return len(r.Scopes) == 0 && len(r.Marks) == 0 && len(r.Values) == 0
}

// log is the open log file. Only one goroutine may use log at a time.
type log struct {
	file *os.File
	// The offset after the last complete record.
	size int64
	// The field dirty means that the file may have bytes after the offset size. These bytes belong to a record that was
	// not reported as committed.
	dirty bool
	// syncFile is file.Sync; tests replace this function.
	syncFile func() error
}

// openLog opens or creates a log file, and calls apply for each record in the file.
func openLog(path string, apply func(record)) (*log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	l := &log{file: f, syncFile: f.Sync}
	if err := lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("filestore: another process has %s open: %w", path, err), f.Close())
	}
	if err := l.load(path, apply); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// load reads the records of the file. If the file is empty, load writes the header. If the last record is cut off, load
// removes this record.
func (l *log) load(path string, apply func(record)) error {
	data, err := io.ReadAll(l.file)
	if err != nil {
		return fmt.Errorf("filestore: %w", err)
	}
	if len(data) < len(magic) && magic[:len(data)] == string(data) {
		return l.create(path)
	}
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return fmt.Errorf("%w: %s is not of this store, or of another version", ErrCorrupt, path)
	}
	l.size = int64(len(magic))
	last := l.size
	for int(l.size) < len(data) {
		r, length, err := decode(data[l.size:])
		if errors.Is(err, errTorn) {
			l.dirty = true
			return l.repair()
		}
		if err != nil {
			return fmt.Errorf("%w: at byte %d of %s: %w", ErrCorrupt, l.size, path, err)
		}
		apply(r)
		last, l.size = l.size, l.size+int64(length)
	}
	// The sync after the last record may have failed, so the record may not be on disk. Write and sync this record
	// again.
	if _, err := l.file.WriteAt(data[last:], last); err != nil {
		return l.must(err)
	}
	return l.must(l.syncFile())
}

// create writes the header of a new file and makes the name of the file durable.
func (l *log) create(path string) error {
	if _, err := l.file.WriteAt([]byte(magic), 0); err != nil {
		return l.must(err)
	}
	l.size = int64(len(magic))
	if err := l.syncFile(); err != nil {
		return l.must(err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return l.must(err)
	}
	return l.must(errors.Join(folder.Sync(), folder.Close()))
}

// append writes a record and syncs the file. After an error, the record is not in the file, unless unknown
// is true. If unknown is true, the record may be in the file until repair has removed it.
func (l *log) append(r record) (unknown bool, err error) {
	if err := l.repair(); err != nil {
		return false, err
	}
	data, err := encode(r)
	if err != nil {
		return false, err
	}
	l.dirty = true
	_, err = l.file.WriteAt(data, l.size)
	if err == nil {
		err = l.syncFile()
	}
	if err != nil {
		undone := l.repair()
		return undone != nil, errors.Join(l.must(err), undone)
	}
	l.dirty = false
	l.size += int64(len(data))
	return false, nil
}

// repair removes the bytes that a failed append may have left.
func (l *log) repair() error {
	if !l.dirty {
		return nil
	}
	if err := l.file.Truncate(l.size); err != nil {
		return l.must(err)
	}
	if err := l.syncFile(); err != nil {
		return l.must(err)
	}
	l.dirty = false
	return nil
}

// must wraps an error of a file operation in ErrFile.
func (l *log) must(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrFile, err)
}

func (l *log) close() error { return l.file.Close() }

func encode(r record) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if int64(len(payload)) > maxPayload {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(payload))
	}
	data := make([]byte, headLength, headLength+len(payload))
	binary.BigEndian.PutUint32(data, uint32(len(payload)))
	binary.BigEndian.PutUint32(data[4:], crc32.Checksum(payload, checksums))
	binary.BigEndian.PutUint32(data[8:], crc32.Checksum(data[:8], checksums))
	return append(data, payload...), nil
}

// decode reads the first record in data and returns its length. The parameter data is the rest of the file. If the
// record is incomplete and no other record follows, decode returns errTorn.
func decode(data []byte) (r record, length int, err error) {
	if len(data) < headLength || len(bytes.Trim(data[headLength:], "\x00")) == 0 {
		return r, 0, errTorn // zero bytes are space that the file system allocated but did not fill
	}
	if binary.BigEndian.Uint32(data[8:]) != crc32.Checksum(data[:8], checksums) {
		return r, 0, errors.New("the head of the record was changed")
	}
	length = headLength + int(binary.BigEndian.Uint32(data))
	if length > len(data) {
		return r, 0, errTorn
	}
	payload := data[headLength:length]
	if binary.BigEndian.Uint32(data[4:]) != crc32.Checksum(payload, checksums) {
		if length == len(data) {
			return r, 0, errTorn
		}
		return r, 0, errors.New("the record was changed")
	}
	return r, length, json.Unmarshal(payload, &r)
}
