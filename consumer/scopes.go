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
	known map[string]int64 // guarded by mutex
}

// numberIn is number for who marks in tx.
func (s *scopes[Tx]) numberIn(ctx context.Context, tx Tx, source string) (int64, error) {
	scoper, can := s.store.(contract.TxScoper[Tx])
	if !can || !scoper.TakesTurns() {
		return s.number(ctx, source)
	}
	s.mutex.Lock()
	n, there := s.known[source]
	s.mutex.Unlock()
	if there {
		return n, nil
	}
	return scoper.ScopeIn(ctx, tx, s.consumer, source, 0) // tx may roll back: not remembered
}

func (s *scopes[Tx]) number(ctx context.Context, source string) (int64, error) {
	s.mutex.Lock()
	n, there := s.known[source]
	s.mutex.Unlock()
	if there {
		return n, nil
	}
	n, err := s.store.Scope(ctx, s.consumer, source, 0)
	if err != nil {
		return 0, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil || len(s.known) >= maxScopes {
		s.known = make(map[string]int64)
	}
	s.known[source] = n
	return n, nil
}
