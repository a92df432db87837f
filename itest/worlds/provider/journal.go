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

// Kind is the kind of an entry in the log.
type Kind string

// Kinds of entries.
const (
	Called  Kind = "called"  // the provider received a call
	Charged Kind = "charged" // a call charged a payment
	Asked   Kind = "asked"   // a query about the outcome was answered
)

// Entry is a line of the log.
type Entry struct {
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	Key       string    `json:"key,omitempty"`
	Reference string    `json:"reference"`
	// Fate is the provider's reaction to a call. Known is true if the call returned the earlier charge of its key.
	Fate  Fate `json:"fate,omitempty"`
	Known bool `json:"known,omitempty"`
	// Status is the status of a call that was rejected because of its key.
	Status int `json:"status,omitempty"`
	// Body is the hash of the charged payment.
	Body [sha256.Size]byte `json:"body,omitzero"`
}

// journal is an append-only file. A charge is on disk before any caller gets its answer. Concurrent charges
// share one sync of the file.
type journal struct {
	mutex   sync.Mutex // mutex guards the end of the file and the field written
	file    *os.File
	written int64
	syncing sync.Mutex // syncing guards the field synced
	synced  int64
}

// openJournal reads the file. If a kill has left an incomplete last line, openJournal removes this line: the caller of
// this line has not got an answer.
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

// Entries calls the function each for every entry of a log. A provider may write to the log at the same time.
func Entries(path string, each func(Entry)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = scan(file, each)
	return err
}

// scan reads entries and returns how many bytes the complete entries have.
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

// add appends an entry. The entry is on disk after sync has returned.
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

// sync returns when all entries that were added before are on disk.
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
