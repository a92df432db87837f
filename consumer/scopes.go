package consumer

import (
	"context"
	"sync"

	"github.com/semel-go/semel/contract"
)

// maxScopes bounds how many sources of a consumer are remembered; beyond it
// the store is asked again.
const maxScopes = 10000

// scopes remembers the interned numbers of a consumer's sources.
type scopes[Tx any] struct {
	consumer string
	store    contract.TxStore[Tx]

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

// numberIn is number for who marks in tx.
func (s *scopes[Tx]) numberIn(ctx context.Context, tx Tx, of scopeOf) (int64, error) {
	scoper, can := s.store.(contract.TxScoper[Tx])
	if !can || !scoper.TakesTurns() {
		return s.number(ctx, of)
	}
	n, generation, known := s.find(of)
	if known {
		return n, nil
	}
	return scoper.ScopeIn(ctx, tx, s.consumer, of.source, generation) // tx may roll back: not remembered
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
	if s.known == nil || len(s.known) >= maxScopes {
		s.known = make(map[scopeOf]int64)
	}
	s.known[of] = n
	return n, nil
}
