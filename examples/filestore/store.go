// Package filestore is a small store for Semel: a map of strings to bytes that lives in
// memory and in one log file. It shows how little a store needs, and is no database.
//
// A batch is a transaction. Batches take turns, so a handler reads what is committed and what
// its own batch wrote. A commit appends one record to the file, with the markers and the
// values, and syncs it before it is reported. Open reads the records again, and removes one
// that a crash has cut off.
//
// The store has no inbox, so no message can be parked. A consumer on this store needs a policy that
// says so, such as ActionHalt; see Example.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Errors of the store, for errors.Is.
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("filestore: the store is closed")
	// ErrTxDone: the batch of this transaction has ended.
	ErrTxDone = errors.New("filestore: the transaction is over")
	// ErrNoNumber: the value is not a decimal number.
	ErrNoNumber = errors.New("filestore: the value is not a number")
	// ErrTooLong: what a batch writes does not fit into one record.
	ErrTooLong = errors.New("filestore: the batch writes too much")
	// ErrFile: the file could not be written. The error around it says why.
	ErrFile = errors.New("filestore: the file cannot be written")
	// ErrCorrupt: the file was changed or damaged. A last record that a crash has cut off is not
	// an error.
	ErrCorrupt = errors.New("filestore: the file is damaged")
	// ErrTurn: the context ended before the call got its turn. The error of a context that a
	// handler used elsewhere is not wrapped so, and is the handler's own.
	ErrTurn = errors.New("filestore: the context has ended before its turn")
)

// Store is an open file with its contents in memory. It is safe for concurrent use.
type Store struct {
	// turn is full while a batch is open. Markers and values change only with it.
	turn chan struct{}
	// writing is held while a record is written. It guards log, and scopes change only with it.
	writing sync.Mutex
	log     *log
	closed  bool
	// mu is held while state changes, and by those who read it with neither of the above.
	mu    sync.RWMutex
	state state
}

// state is what all records of the file add up to.
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

// Open opens the file of a store, and creates it if it does not exist. Only one process at a
// time may have it open.
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

// Close closes the file. Nothing is committed afterwards; what is called fails with ErrClosed.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.log.close()
}

// Get returns a committed value, and whether there is one.
func (s *Store) Get(key string) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.state.values[key]
	return append([]byte(nil), v...), ok
}

// Limits tells the consumer that only one batch can be open at a time.
func (s *Store) Limits() store.Limits { return store.Limits{SingleWriter: true} }

// Scope returns the number of a scope. A new one is in the file before it is returned.
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

// Begin waits for its turn and writes the marks into a new batch.
func (s *Store) Begin(ctx context.Context, _ store.TxOptions, marks []store.Mark) (store.Batch[*Tx], []store.Verdict, error) {
	for i := range marks {
		if err := supported(&marks[i]); err != nil {
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

// supported returns an error for a mark that needs an inbox.
func supported(m *store.Mark) error {
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

// Classify says what an error means for its batch.
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

// IsStoreFault reports errors that no message can cause: a full disk, or a batch that does not end.
func (s *Store) IsStoreFault(err error) bool {
	return errors.Is(err, ErrFile) || errors.Is(err, ErrTurn)
}

// enter waits for the turn, and removes what a commit of unknown outcome may have left.
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

// write makes a record durable and visible. The caller holds writing, and has the turn for
// markers and values. After an error it is unknown, or not written.
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

// apply adds a record to the state.
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
