// Package scopes caches the numbers that a store gives to the sources of a consumer. Markers contain the numbers of
// sources, which the store calls scopes.
package scopes

import (
	"context"
	"sync"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Most is the maximum number of cached sources. The sources of one batch are all cached, even if there are more than
// Most. If a number is not cached, the store is asked again.
const Most = 10000

// Store numbers the sources of a consumer.
type Store interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
}

// Cache caches the numbers of a consumer's sources. The methods of Cache may be called by several goroutines.
type Cache[Tx any] struct {
	consumer string
	store    Store
	// singleWriter is store.Limits.SingleWriter of the store.
	singleWriter bool

	mutex sync.Mutex
	known map[Of]int64 // guarded by mutex
	// The fields current and previous are the numbers of the rules that form identities (derivations), for Identity and
	// for PreviousIdentity. The mutex guards current and previous, which are written before the first message is
	// marked.
	current, previous int64
}

// New returns an empty cache. The parameter singleWriter is store.Limits.SingleWriter of the store.
func New[Tx any](consumer string, st Store, singleWriter bool) *Cache[Tx] {
	return &Cache[Tx]{consumer: consumer, store: st, singleWriter: singleWriter}
}

// Of identifies a number: by a source, and by whether the number is for the consumer's Identity or
// PreviousIdentity.
type Of struct {
	Source   string
	Previous bool
}

// SetGenerations sets the numbers of the rules that form identities, for Identity and for PreviousIdentity, and clears
// the cache.
func (s *Cache[Tx]) SetGenerations(current, previous int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.current, s.previous, s.known = current, previous, nil
}

// Forget clears the cache. If a standby or a backup took over during an outage, the store may have lost the
// newest numbers, and may give these numbers to other sources.
func (s *Cache[Tx]) Forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.known = nil
}

// find returns the number of a source, if the number is cached, and the number of the rule that formed the identity.
func (s *Cache[Tx]) find(of Of) (number, generation int64, known bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	number, known = s.known[of]
	if of.Previous {
		return number, s.previous, known
	}
	return number, s.current, known
}

// InTransaction reports whether the store assigns numbers in the transaction that writes markers.
func (s *Cache[Tx]) InTransaction() bool { return s.inTransaction() != nil }

// inTransaction returns the store if the store assigns numbers in the transaction that writes markers. For other
// stores, inTransaction returns nil.
func (s *Cache[Tx]) inTransaction() store.CallerTx[Tx] {
	if scoper, can := s.store.(store.CallerTx[Tx]); can && s.singleWriter {
		return scoper
	}
	return nil
}

// NumberIn returns the number of a source for a marker in tx.
func (s *Cache[Tx]) NumberIn(ctx context.Context, tx Tx, of Of) (int64, error) {
	scoper := s.inTransaction()
	if scoper == nil {
		return s.Number(ctx, of)
	}
	n, generation, known := s.find(of)
	if known {
		return n, nil
	}
	return scoper.ScopeIn(ctx, tx, s.consumer, of.Source, generation) // tx may roll back, so the number is not cached
}

// Know asks the store for those numbers that are not cached. Know makes one call for each generation, so that
// a batch with many new sources does not need a call for each source.
func (s *Cache[Tx]) Know(ctx context.Context, all []Of) error {
	unknown := s.unknown(all)
	for _, previous := range []bool{false, true} {
		var sources []string
		for of := range unknown {
			if of.Previous == previous {
				sources = append(sources, of.Source)
			}
		}
		if len(sources) == 0 {
			continue
		}
		_, generation, _ := s.find(Of{Previous: previous})
		numbers, err := s.ask(ctx, sources, generation)
		if err != nil {
			return err
		}
		s.mutex.Lock()
		for i, source := range sources {
			s.keep(Of{source, previous}, numbers[i])
		}
		s.mutex.Unlock()
	}
	return nil
}

// unknown returns the sources whose numbers are not cached. If the cache has too little space, unknown clears the cache
// and returns all sources of the batch.
func (s *Cache[Tx]) unknown(all []Of) map[Of]bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var unknown map[Of]bool
	add := func(of Of) {
		if unknown == nil {
			unknown = map[Of]bool{}
		}
		unknown[of] = true
	}
	for _, of := range all {
		if _, known := s.known[of]; !known {
			add(of)
		}
	}
	if len(unknown) > 0 && len(s.known)+len(unknown) > Most {
		s.known = nil
		for _, of := range all {
			add(of)
		}
	}
	return unknown
}

// ask asks the store for the numbers of sources, with one call if the store supports that.
func (s *Cache[Tx]) ask(ctx context.Context, sources []string, generation int64) ([]int64, error) {
	if interner, able := s.store.(admin.Interner); able {
		return interner.Scopes(ctx, s.consumer, sources, generation)
	}
	numbers := make([]int64, len(sources))
	for i, source := range sources {
		var err error
		if numbers[i], err = s.store.Scope(ctx, s.consumer, source, generation); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// keep caches the number of a source. The caller has locked the mutex.
func (s *Cache[Tx]) keep(of Of, number int64) {
	if s.known == nil {
		s.known = make(map[Of]int64)
	}
	s.known[of] = number
}

// Number returns the number of a source.
func (s *Cache[Tx]) Number(ctx context.Context, of Of) (int64, error) {
	n, generation, known := s.find(of)
	if known {
		return n, nil
	}
	n, err := s.store.Scope(ctx, s.consumer, of.Source, generation)
	if err != nil {
		return 0, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.known) >= Most {
		s.known = nil
	}
	s.keep(of, n)
	return n, nil
}
