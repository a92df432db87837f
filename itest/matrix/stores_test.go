//go:build unix

package matrix

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// faultyFile is a store in SQLite. The field fault determines which calls of the store fail.
type faultyFile struct {
	*sqlstore.Store
	fault *fault
}

func classOf(err error, otherwise func(error) store.Class) store.Class {
	if errors.Is(err, errInjected) {
		return store.ClassDown
	}
	return otherwise(err)
}

func (s faultyFile) Classify(err error) store.Class { return classOf(err, s.Store.Classify) }

func (s faultyFile) IsStoreFault(err error) bool {
	return errors.Is(err, errInjected) || s.Store.IsStoreFault(err)
}

func (s faultyFile) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	if err := s.fault.call("look-up"); err != nil {
		return nil, err
	}
	return s.Store.LookUpMarkers(ctx, marks)
}

func (s faultyFile) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*sql.Tx], []store.Verdict, error) {
	if err := s.fault.call("begin"); err != nil {
		return nil, nil, err
	}
	b, verdicts, err := s.Store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return faultyBatch{b, b.(store.TxStatus), s.fault}, verdicts, nil
}

type faultyBatch struct {
	store.Batch[*sql.Tx]
	store.TxStatus
	fault *fault
}

func (b faultyBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if err := b.fault.call("commit-before"); err != nil {
		b.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	r := b.Batch.Commit(ctx, e)
	if err := b.fault.call("commit-after"); err != nil {
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	return r
}

func (s faultyFile) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	return around(s.fault, "claim", func() ([]store.Claimed, error) { return s.Store.Claim(ctx, o) })
}

func (s faultyFile) StartCalls(ctx context.Context, all []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	return around(s.fault, "claim", func() ([]store.CallStarted, error) { return s.Store.StartCalls(ctx, all, lease) })
}

func (s faultyFile) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	return around(s.fault, "end", func() ([]int, error) { return s.Store.End(ctx, all) })
}

// faultyKeys is a store of leased keys. The field fault determines which calls of the store fail.
type faultyKeys struct {
	keystore.Store
	fault *fault
}

func (k faultyKeys) Classify(err error) store.Class { return classOf(err, k.Store.Classify) }

func (k faultyKeys) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	return around(k.fault, "key", func() (keystore.Answer, error) { return k.Store.ClaimKey(ctx, c) })
}

func (k faultyKeys) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	_, err := around(k.fault, "key", func() (struct{}, error) { return struct{}{}, k.Store.EndKey(ctx, key, t, e) })
	return err
}

// around calls the function do, which executes an operation of the store. If the fault requires it, around returns an
// error instead, before or after the call of do.
func around[V any](f *fault, operation string, do func() (V, error)) (v V, err error) {
	if err := f.call(operation + "-before"); err != nil {
		return v, err
	}
	done, err := do()
	if failed := f.call(operation + "-after"); failed != nil {
		return v, failed
	}
	return done, err
}
