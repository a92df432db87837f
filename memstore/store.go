package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Store is a store in memory. Create a Store with New. Store is safe for concurrent use.
type Store struct {
	now  func() time.Time
	fail func(op string) error

	mu sync.Mutex // guards all following fields, and the objects to which they point

	scopes     map[scope]int64
	scopeOf    []scope // by number - 1
	markers    map[identity]marker
	data       map[string]value
	changes    uint64 // number of changes of data; also the version of the newest value
	rows       []*row // by number
	numbers    int64  // number of the last row
	rowOf      map[rowKey]*row
	streams    map[identity]*stream // by scope and name
	places     int64                // the last assigned position in a queue
	acts       []store.Act
	chain      chain
	positions  map[lane]source.Position
	retentions map[string]*retentionState // by consumer
	low        map[string]time.Time       // low-water marks, by consumers that have a scope
	controls   map[string]admin.Control   // by consumer
	results    map[identity][]byte
	replays    []*replay

	derivations []admin.Derivation
	generations map[string][]*generation // by consumer, then by number
	owners      map[string]string        // of consumers' names
}

type (
	scope struct {
		consumer, source string
		generation       int64
	}
	lane     struct{ consumer, lane string }
	identity struct {
		scope int64
		id    string
	}
	// rowKey is the key of a row: its identity, and for a conflict also its fingerprint.
	rowKey struct {
		identity
		conflict    bool
		fingerprint semel.Fingerprint
	}
	marker struct {
		fingerprint semel.Fingerprint
		outcome     store.Outcome
		at          time.Time
		owner       *batch // the open batch that wrote the marker; nil after the commit
	}
	row struct {
		store.StoredRow
		key    rowKey
		token  store.Token // token of the claim, while the row is in progress
		called store.Token // token of the last call with an unknown outcome
		cause  string      // store.Mark.Cause
		ended  time.Time   // time of the last completion
		again  bool        // see store.CallStarted.Again
		edits  []admin.StoredEdit
	}
)

// Option changes the store that New creates.
type Option func(*Store)

// Clock makes the store call the function now for the current time. The default is time.Now.
func Clock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// Fail makes the store call the function fail with the name of each operation. If the function returns an error, the
// operation returns that error, with store.ClassDown. Fail is for tests; the function may be called from several
// goroutines. The names of the operations are:
//
//   - "scope", "begin";
//   - "commit-before": nothing is committed; "commit-after": the batch is committed, and the caller gets
//     store.CommitUnknown;
//   - "rows" of store.Inbox, "retention" of store.Reaper, "results" of admin.Results;
//   - "claim-before" and "claim-after" of store.Leases, before and after the operation is done; "look-up"
//     of its LookUpMarkers;
//   - "offsets", "advance-before" and "advance-after" of laneoffset.Store;
//   - "emit-before" and "emit-after" of admin.Emitter, "control" of admin.Controls, "replay" of
//     admin.Replays, "foretell" of admin.Previewer, "generations" of admin.Generations, "seal" of
//     admin.Auditor, "erase" of admin.Eraser.
func Fail(fail func(op string) error) Option { return func(s *Store) { s.fail = fail } }

// New returns an empty store.
func New(options ...Option) *Store {
	s := &Store{
		now:        time.Now,
		fail:       func(string) error { return nil },
		scopes:     map[scope]int64{},
		markers:    map[identity]marker{},
		data:       map[string]value{},
		rowOf:      map[rowKey]*row{},
		streams:    map[identity]*stream{},
		positions:  map[lane]source.Position{},
		retentions: map[string]*retentionState{},
		low:        map[string]time.Time{},
		controls:   map[string]admin.Control{},
		owners:     map[string]string{},

		generations: map[string][]*generation{},
		results:     map[identity][]byte{},
		chain:       chain{of: map[int64]int64{}},
	}
	for _, o := range options {
		o(s)
	}
	return s
}

// ErrTxDone is the error of the methods of a Tx whose batch has ended.
var ErrTxDone = errors.New("memstore: the transaction is over")

// downError is the error of an outage of the store.
type downError struct {
	op  string
	err error
}

func (e *downError) Error() string { return fmt.Sprintf("memstore: %s: %v", e.op, e.err) }
func (e *downError) Unwrap() error { return e.err }

func (s *Store) ask(op string) error {
	if err := s.fail(op); err != nil {
		return &downError{op, err}
	}
	return nil
}

// The method lock calls the method ask and, if ask returns no error, locks the store.
func (s *Store) lock(op string) error {
	err := s.ask(op)
	if err == nil {
		s.mu.Lock()
	}
	return err
}

// Classify implements store.TxStore.
func (s *Store) Classify(err error) store.Class {
	var down *downError
	switch {
	case errors.As(err, &down):
		return store.ClassDown
	case errors.Is(err, generations.ErrNotUsable):
		return store.ClassDown
	case errors.Is(err, ErrTxDone):
		return store.ClassAborted
	case errors.Is(err, errSerial), errors.Is(err, errStreamBusy):
		return store.ClassContended
	case errors.Is(err, ErrNoNumber):
		return store.ClassPermanent
	default:
		return store.ClassRetry
	}
}

// IsStoreFault implements store.TxStore. IsStoreFault returns false, because the store cannot distinguish the outages
// that tests simulate.
func (s *Store) IsStoreFault(error) bool { return false }

// Limits implements store.TxStore.
func (s *Store) Limits() store.Limits { return store.Limits{StepOutput: steplimit.Output} }

// Scope implements store.TxStore.
func (s *Store) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	if err := errors.Join(ctx.Err(), s.ask("scope")); err != nil {
		return 0, &downError{"scope", err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := scope{consumer, source, generation}
	n, ok := s.scopes[key]
	if !ok {
		s.scopeOf = append(s.scopeOf, key)
		n = int64(len(s.scopeOf))
		s.scopes[key] = n
		if _, known := s.low[consumer]; !known {
			s.low[consumer] = time.Time{} // Advance raises the low-water mark only of consumers that have a scope
		}
	}
	return n, nil
}

// LoadPosition implements source.PositionStore.
func (s *Store) LoadPosition(_ context.Context, consumer, name string) (source.Position, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.positions[lane{consumer, name}]
	return p, ok, nil
}

// KeepPosition implements source.PositionStore.
func (s *Store) KeepPosition(_ context.Context, consumer, name string, p source.Position) (source.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := lane{consumer, name}
	if _, known := s.positions[key]; !known {
		p.Check = append([]byte(nil), p.Check...)
		s.positions[key] = p
	}
	return s.positions[key], nil
}

// SavePosition implements source.PositionStore.
func (s *Store) SavePosition(_ context.Context, consumer, name string, p source.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Check = append([]byte(nil), p.Check...)
	s.positions[lane{consumer, name}] = p
	return nil
}

// Offsets implements laneoffset.Store.
func (s *Store) Offsets(_ context.Context, consumer string, lanes []string) ([]laneoffset.LaneOffset, error) {
	if err := s.lock("offsets"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := make([]laneoffset.LaneOffset, len(lanes))
	for i, name := range lanes {
		all[i] = s.offset(consumer, name)
	}
	return all, nil
}

// AdvanceOffsets implements laneoffset.Store.
func (s *Store) AdvanceOffsets(_ context.Context, consumer string, to []laneoffset.Advance) ([]laneoffset.LaneOffset, error) {
	if err := s.ask("advance-before"); err != nil {
		return nil, err
	}
	before := s.advanceOffsets(consumer, to)
	if err := s.ask("advance-after"); err != nil {
		return nil, err
	}
	return before, nil
}

func (s *Store) advanceOffsets(consumer string, to []laneoffset.Advance) []laneoffset.LaneOffset {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, lacking := make([]laneoffset.LaneOffset, len(to)), false
	for i, a := range to {
		before[i] = s.offset(consumer, a.Lane)
		lacking = lacking || a.Lacks(before[i])
	}
	for i, a := range to {
		if !lacking && a.Offset > before[i].Offset {
			s.positions[lane{consumer, a.Lane}] = source.Position{Offset: a.Offset}
		}
	}
	return before
}

// offset returns the offset of a lane. The caller has locked mu.
func (s *Store) offset(consumer, name string) laneoffset.LaneOffset {
	p, known := s.positions[lane{consumer, name}]
	if !known {
		return laneoffset.LaneOffset{Lane: name, Offset: laneoffset.None}
	}
	return laneoffset.LaneOffset{Lane: name, Offset: p.Offset}
}
