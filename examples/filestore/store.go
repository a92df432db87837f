// Package filestore is a small store for Semel: a map from strings to bytes in memory and in one log file. filestore
// shows how little a store needs. A filestore is not a database.
//
// A batch is a transaction. Only one batch is open at a time, so a handler reads committed values and values
// that its own batch has written. A commit appends one record with markers and values to the file. The
// commit succeeds after the file is synced. Open reads all records, and removes a last record that a crash
// has cut off.
//
// The store has no inbox, so messages cannot be parked. A consumer with this store needs a configuration
// without parking, such as ActionHalt; see Example.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// The errors of the store, for errors.Is.
var (
	// ErrClosed means that the store is closed.
	ErrClosed = errors.New("filestore: the store is closed")
	// ErrTxDone means that the batch of the transaction has ended.
	ErrTxDone = errors.New("filestore: the transaction is over")
	// ErrNoNumber means that the value is not a decimal number.
	ErrNoNumber = errors.New("filestore: the value is not a number")
	// ErrTooLong means that a batch is too large for one record.
	ErrTooLong = errors.New("filestore: the batch writes too much")
	// ErrFile means that the file could not be written. The wrapping error has the cause.
	ErrFile = errors.New("filestore: the file cannot be written")
	// ErrCorrupt means that the file was changed or damaged. A cut-off last record is not an error.
	ErrCorrupt = errors.New("filestore: the file is damaged")
	// ErrTurn means that the context ended before the batch could begin. If a handler's own call fails
	// because of a context, the error is not wrapped in ErrTurn.
	ErrTurn = errors.New("filestore: the context has ended before its turn")
)

// Store is an open file and its contents in memory. Store is safe for concurrent use.
type Store struct {
	// The channel turn contains a token while a batch is open. Markers and values change only while the channel has the
	// token.
	turn chan struct{}
	// The mutex writing is locked while a record is written. The mutex guards the fields log and closed. Scopes (the
	// numbers of consumer, source and generation) change only while the mutex is locked.
	writing sync.Mutex
	log     *log
	closed  bool
	// mu guards state. A goroutine that holds the mutex writing, or has put the token into turn, may read state without
	// mu.
	mu    sync.RWMutex
	state state
}

// state is the sum of all records in the file.
type state struct {
	scopes  map[scopeKey]int64
	markers map[markerKey]marker
	values  map[string][]byte
}

type scopeKey struct {
	consumer, source string
	generation       int64
}

type markerKey struct {
	scope int64
	id    string
}

type marker struct {
	outcome     int64
	fingerprint semel.Fingerprint
}

var _ store.TxStore[*Tx] = (*Store)(nil)

// Open opens the file of a store. If the file does not exist, Open creates it. Only one process may have the
// file open at a time.
func Open(path string) (*Store, error) {
	s := &Store{turn: make(chan struct{}, 1), state: state{
		scopes:  map[scopeKey]int64{},
		markers: map[markerKey]marker{},
		values:  map[string][]byte{},
	}}
	l, err := openLog(path, s.state.apply)
	if err != nil {
		return nil, err
	}
	s.log = l
	return s, nil
}

// Close closes the file. Later commits and calls fail with ErrClosed.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.log.close()
}

// Get returns the committed value of key. The second result is false if there is no value.
func (s *Store) Get(key string) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.state.values[key]
	return append([]byte(nil), v...), ok
}

// Limits reports that only one batch can be open at a time.
func (s *Store) Limits() store.Limits { return store.Limits{SingleWriter: true} }

// Scope returns the number for a consumer, source and generation. A new number is written to the file before
// Scope returns.
func (s *Store) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	key := scopeKey{consumer, source, generation}
	s.mu.RLock()
	number, ok := s.state.scopes[key]
	s.mu.RUnlock()
	if ok {
		return number, nil
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrTurn, err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if number, ok := s.state.scopes[key]; ok {
		return number, nil
	}
	number = int64(len(s.state.scopes)) + 1
	_, err := s.write(record{Scopes: []scopeRecord{{number, []byte(consumer), []byte(source), generation}}})
	return number, err
}

// Begin waits until no other batch is open, and then begins a batch with the given marks.
func (s *Store) Begin(ctx context.Context, _ store.TxOptions, marks []store.Mark) (store.Batch[*Tx], []store.Verdict, error) {
	for i := range marks {
		if err := checkSupported(&marks[i]); err != nil {
			return nil, nil, fmt.Errorf("mark %d: %w", i, err)
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	b := &Batch{store: s, marks: make([]*markRecord, len(marks)), own: map[markerKey]marker{}, tx: Tx{base: s.state.values, open: true}}
	verdicts := make([]store.Verdict, len(marks))
	for i := range marks {
		verdicts[i] = b.mark(i, &marks[i])
	}
	return b, verdicts, nil
}

// checkSupported returns an error for a message that needs an inbox.
func checkSupported(m *store.Mark) error {
	switch {
	case m.Claim.Token != 0:
		return fmt.Errorf("claims: %w", semel.ErrUnsupported)
	case m.Version.Asks:
		return fmt.Errorf("versions: %w", semel.ErrUnsupported)
	case m.Previous != nil:
		return fmt.Errorf("former identities: %w", semel.ErrUnsupported)
	}
	return nil
}

// Classify returns what an error means for the batch.
func (s *Store) Classify(err error) store.Class {
	switch {
	case err == nil:
		return store.ClassNone
	case errors.Is(err, ErrFile), errors.Is(err, ErrClosed):
		return store.ClassDown
	case errors.Is(err, ErrTurn):
		return store.ClassContended
	case errors.Is(err, ErrTxDone):
		return store.ClassAborted
	case errors.Is(err, ErrNoNumber), errors.Is(err, ErrTooLong), errors.Is(err, semel.ErrUnsupported):
		return store.ClassPermanent
	}
	return store.ClassRetry
}

// IsStoreFault reports whether an error cannot be caused by a message. Examples are a full disk and another
// batch that does not end.
func (s *Store) IsStoreFault(err error) bool {
	return errors.Is(err, ErrFile) || errors.Is(err, ErrTurn)
}

// enter waits until no other batch is open. After the wait, enter removes the bytes that a commit with an unknown
// outcome may have left in the file.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrTurn, err)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrTurn, ctx.Err())
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	err := ErrClosed
	if !s.closed {
		err = s.log.repair()
	}
	if err != nil {
		s.leave()
	}
	return err
}

func (s *Store) leave() { <-s.turn }

// write writes a record to the file and applies it to the state. The caller must hold the mutex writing and, for
// markers and values, must have put the token into turn. After an error, the result unknown reports whether the record
// may have been written.
func (s *Store) write(r record) (unknown bool, err error) {
	if s.closed {
		return false, ErrClosed
	}
	if r.empty() {
		return false, nil
	}
	if unknown, err = s.log.append(r); err != nil {
		return unknown, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.apply(r)
	return false, nil
}

// apply applies a record to the state.
func (s *state) apply(r record) {
	for _, c := range r.Scopes {
		s.scopes[scopeKey{string(c.Consumer), string(c.Source), c.Generation}] = c.Number
	}
	for _, m := range r.Marks {
		s.markers[markerKey{m.Scope, string(m.ID)}] = marker{m.Outcome, semel.Fingerprint{Version: m.Rule, Sum: m.Sum}}
	}
	for _, v := range r.Values {
		if v.Gone {
			delete(s.values, string(v.Key))
			continue
		}
		s.values[string(v.Key)] = v.Value
	}
}
