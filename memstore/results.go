package memstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

var (
	_ admin.Results[*Tx] = (*Store)(nil)
)

// KeepResult implements admin.Results.
func (s *Store) KeepResult(_ context.Context, tx *Tx, of admin.ResultOf, result []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tx.addResult(of, result)
}

var _ admin.CommitResultWriter = (*batch)(nil)

// WriteResultAtCommit implements admin.CommitResultWriter.
func (b *batch) WriteResultAtCommit(of admin.ResultOf, result []byte) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	_ = b.tx.addResult(of, result) // if the batch has ended, Commit returns the error
}

// addResult adds a result to a transaction. The caller has locked the store.
func (tx *Tx) addResult(of admin.ResultOf, result []byte) error {
	if tx.batch.ended {
		return ErrTxDone
	}
	if tx.results == nil {
		tx.results = map[identity][]byte{}
	}
	tx.results[identity{of.Scope, string(of.ID)}] = append([]byte{}, result...)
	return nil
}

// Results implements admin.Results.
func (s *Store) Results(_ context.Context, of []admin.ResultOf) ([][]byte, error) {
	if err := s.lock("results"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	results := make([][]byte, len(of))
	for i, o := range of {
		results[i] = bytes.Clone(s.results[identity{o.Scope, string(o.ID)}])
	}
	return results, nil
}

// steps returns a copy of a list of completed steps.
func steps(done []store.StepDone) []store.StepDone {
	done = slices.Clone(done)
	for i := range done {
		done[i].Output = bytes.Clone(done[i].Output)
	}
	return done
}
