package consumer

import (
	"context"
	"sync"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// maxScopes bounds how many sources of a consumer are remembered, but for those of one batch;
// beyond it the store is asked again.
const maxScopes = 10000

// scopes remembers the interned numbers of a consumer's sources.
type scopes[Tx any] struct {
	consumer string
	store    anyStore
	// singleWriter is store.Limits.SingleWriter of the store.
	singleWriter bool

	mutex sync.Mutex
	known map[scopeOf]int64 // guarded by mutex
	// now and former are the generations of identities as they are found now, and as they
	// were; guarded by mutex, and written before anything is marked.
	now, former int64
}

// scopeOf is a scope of the consumer.
type scopeOf struct {
	source string
	former bool
}

// settle says which generations identities are of.
func (s *scopes[Tx]) settle(now, former int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now, s.former, s.known = now, former, nil
}

// forget has the store number all scopes again. A server that was away may have come back
// without those that were written last, as a standby or from a backup, and may give their
// numbers to other sources.
func (s *scopes[Tx]) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.known = nil
}

// find returns what is known of a scope.
func (s *scopes[Tx]) find(of scopeOf) (number, generation int64, known bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	number, known = s.known[of]
	if of.former {
		return number, s.former, known
	}
	return number, s.now, known
}

// inTurn is the store where it numbers scopes in the transaction that marks, nil otherwise.
func (s *scopes[Tx]) inTurn() store.CallerTx[Tx] {
	if scoper, can := s.store.(store.CallerTx[Tx]); can && s.singleWriter {
		return scoper
	}
	return nil
}

// numberIn is number for who marks in tx.
func (s *scopes[Tx]) numberIn(ctx context.Context, tx Tx, of scopeOf) (int64, error) {
	scoper := s.inTurn()
	if scoper == nil {
		return s.number(ctx, of)
	}
	n, generation, known := s.find(of)
	if known {
		return n, nil
	}
	return scoper.ScopeIn(ctx, tx, s.consumer, of.source, generation) // tx may roll back: not remembered
}

// know has the store number all of these scopes that are not remembered, with one call for
// each generation, so that a batch of many new sources does not wait for each of them.
func (s *scopes[Tx]) know(ctx context.Context, all []scopeOf) error {
	unknown := s.unknown(all)
	for _, former := range []bool{false, true} {
		var sources []string
		for of := range unknown {
			if of.former == former {
				sources = append(sources, of.source)
			}
		}
		if len(sources) == 0 {
			continue
		}
		_, generation, _ := s.find(scopeOf{former: former})
		numbers, err := s.ask(ctx, sources, generation)
		if err != nil {
			return err
		}
		s.mutex.Lock()
		for i, source := range sources {
			s.keep(scopeOf{source, former}, numbers[i])
		}
		s.mutex.Unlock()
	}
	return nil
}

// unknown are those scopes that are not remembered, each once. Where they have no place beside
// those that are, all are forgotten, and what of the batch was known is asked for again.
func (s *scopes[Tx]) unknown(all []scopeOf) map[scopeOf]bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var unknown map[scopeOf]bool
	add := func(of scopeOf) {
		if unknown == nil {
			unknown = map[scopeOf]bool{}
		}
		unknown[of] = true
	}
	for _, of := range all {
		if _, known := s.known[of]; !known {
			add(of)
		}
	}
	if len(unknown) > 0 && len(s.known)+len(unknown) > maxScopes {
		s.known = nil
		for _, of := range all {
			add(of)
		}
	}
	return unknown
}

// ask has the store number sources, with one call if it can.
func (s *scopes[Tx]) ask(ctx context.Context, sources []string, generation int64) ([]int64, error) {
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

// keep remembers a number; the mutex is held.
func (s *scopes[Tx]) keep(of scopeOf, number int64) {
	if s.known == nil {
		s.known = make(map[scopeOf]int64)
	}
	s.known[of] = number
}

func (s *scopes[Tx]) number(ctx context.Context, of scopeOf) (int64, error) {
	n, generation, known := s.find(of)
	if known {
		return n, nil
	}
	n, err := s.store.Scope(ctx, s.consumer, of.source, generation)
	if err != nil {
		return 0, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.known) >= maxScopes {
		s.known = nil
	}
	s.keep(of, n)
	return n, nil
}
