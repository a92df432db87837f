package memstore

import (
	"bytes"
	"errors"
	"maps"
	"strconv"
)

// Tx is the access of a batch to the table of the store. Only one goroutine may use a Tx at a time. After the
// batch has ended, every method returns ErrTxDone.
type Tx struct {
	batch   *batch
	changes map[string]change
	reads   map[string]uint64 // version of each value that this transaction has read
	results map[identity][]byte
}

// value is a value in the table. A number is stored as an integer, so that Add costs little.
type value struct {
	bytes   []byte
	number  int64
	numeric bool
	version uint64
}

// change is a change of a key that is not committed yet: a new value, an addition, or both.
type change struct {
	replaced, deleted bool
	value             value
	delta             int64
}

// ErrNoNumber is the error of Add if the value is not a number.
var ErrNoNumber = errors.New("memstore: the value is not a number")

var errSerial = errors.New("memstore: another transaction changed what this one read")

// Get returns the value of key, including changes of the same transaction, or nil if there is no value.
func (t *Tx) Get(key string) ([]byte, error) {
	s := t.batch.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.batch.ended {
		return nil, ErrTxDone
	}
	c := t.changes[key]
	v, exists := c.value, !c.deleted
	if !c.replaced {
		v, exists = s.data[key]
		t.read(key, v.version)
	}
	if !exists && c.delta == 0 {
		return nil, nil
	}
	if c.delta == 0 {
		return v.text(), nil // a value that was set may be any text
	}
	v, err := v.add(c.delta)
	return v.text(), err
}

func (t *Tx) read(key string, version uint64) {
	if t.reads == nil {
		t.reads = map[string]uint64{}
	}
	if _, ok := t.reads[key]; !ok {
		t.reads[key] = version
	}
}

// Set sets the value of key. Set copies the bytes.
func (t *Tx) Set(key string, v []byte) error {
	return t.replace(key, change{replaced: true, value: value{bytes: append([]byte{}, v...)}})
}

// Delete removes key.
func (t *Tx) Delete(key string) error {
	return t.replace(key, change{replaced: true, deleted: true})
}

// Add adds n to the decimal number at key. A key without a value counts as 0. Several batches can add to the
// same key at the same time without contention.
func (t *Tx) Add(key string, n int64) error {
	s := t.batch.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.batch.ended {
		return ErrTxDone
	}
	c := t.changes[key]
	base := c.value
	if !c.replaced {
		base = s.data[key]
	}
	if _, err := base.add(0); err != nil {
		return err
	}
	c.delta += n
	t.put(key, c)
	return nil
}

func (t *Tx) replace(key string, c change) error {
	s := t.batch.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.batch.ended {
		return ErrTxDone
	}
	t.put(key, c)
	return nil
}

func (t *Tx) put(key string, c change) {
	if t.changes == nil {
		t.changes = make(map[string]change, len(t.batch.marks))
	}
	t.changes[key] = c
}

// check returns an error if the transaction must not commit. The caller has locked the store.
func (t *Tx) check() error {
	s := t.batch.store
	for key, version := range t.reads {
		if s.data[key].version != version {
			return errSerial
		}
	}
	for key, c := range t.changes {
		if c.delta == 0 || c.replaced {
			continue
		}
		if _, err := s.data[key].add(c.delta); err != nil {
			return err
		}
	}
	return nil
}

// apply writes the changes of the transaction. The caller has locked the store, and check has returned nil.
func (t *Tx) apply() {
	s := t.batch.store
	maps.Copy(s.results, t.results)
	for key, c := range t.changes {
		v := c.value
		if !c.replaced {
			v = s.data[key]
		}
		if c.deleted && c.delta == 0 {
			delete(s.data, key)
			continue
		}
		if c.delta != 0 || !c.replaced {
			v, _ = v.add(c.delta)
		}
		s.changes++
		v.version = s.changes
		s.data[key] = v
	}
}

func (v value) add(n int64) (value, error) {
	if v.numeric || v.bytes == nil {
		return value{number: v.number + n, numeric: true}, nil
	}
	old, err := strconv.ParseInt(string(v.bytes), 10, 64)
	if err != nil {
		return v, ErrNoNumber
	}
	return value{number: old + n, numeric: true}, nil
}

func (v value) text() []byte {
	if v.numeric {
		return strconv.AppendInt(nil, v.number, 10)
	}
	return bytes.Clone(v.bytes)
}

// Get returns the committed value of key, or nil if there is no value.
func (s *Store) Get(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.data[key]
	if !ok {
		return nil
	}
	return v.text()
}
