package provider

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Kind is what an entry of the log tells of.
type Kind string

// The kinds.
const (
	Called  Kind = "called"
	Charged Kind = "charged"
	Asked   Kind = "asked" // and was told what became of it
)

// Entry is a line of the log.
type Entry struct {
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	Key       string    `json:"key,omitempty"`
	Reference string    `json:"reference"`
	// Fate is a call's; Known says that its key's charge was told once more.
	Fate  Fate `json:"fate,omitempty"`
	Known bool `json:"known,omitempty"`
	// Status is of a call that was refused for its key.
	Status int `json:"status,omitempty"`
	// Body is the hash of a charge's payment.
	Body [sha256.Size]byte `json:"body,omitzero"`
}

// journal is a file to which entries are added. A charge is on the disk before anybody
// hears of it; charges that come at once share a write to the disk.
type journal struct {
	mutex   sync.Mutex // guards file's end and written
	file    *os.File
	written int64
	syncing sync.Mutex // guards synced
	synced  int64
}

// openJournal reads what is in the file. What a kill left of a last line is cut off:
// nobody has heard of it.
func openJournal(path string, each func(Entry)) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	whole, err := scan(file, each)
	if err == nil {
		err = file.Truncate(whole)
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{file: file}, nil
}

// Entries calls each for every entry of a log; a provider may be writing it.
func Entries(path string, each func(Entry)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = scan(file, each)
	return err
}

// scan reads entries, and says how many bytes of whole ones there are.
func scan(from io.Reader, each func(Entry)) (whole int64, err error) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF:
			return whole, nil
		case err != nil:
			return whole, err
		}
		var e Entry
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return whole, fmt.Errorf("provider: the entry at byte %d of the log: %w", whole, err)
		}
		whole += int64(len(line))
		each(e)
	}
}

// add writes an entry; it is on the disk when sync has returned.
func (j *journal) add(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	n, err := j.file.Write(append(line, '\n'))
	j.written += int64(n)
	return err
}

// sync returns when all is on the disk that was added before.
func (j *journal) sync() error {
	j.mutex.Lock()
	want := j.written
	j.mutex.Unlock()
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= want {
		return nil
	}
	j.mutex.Lock()
	now := j.written
	j.mutex.Unlock()
	err := j.file.Sync()
	if err == nil {
		j.synced = now
	}
	return err
}

func (j *journal) close() error { return errors.Join(j.sync(), j.file.Close()) }
