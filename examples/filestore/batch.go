package filestore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

var _ store.Batch[*Tx] = (*Batch)(nil)

// Batch is an open transaction with its marks. While the transaction is open, no other batch of the store
// can begin.
type Batch struct {
	store *Store
	// One entry for each message: the marker to write, or nil if the identity already has a marker.
	marks []*markRecord
	// The markers that this batch will write.
	own map[markerKey]marker
	tx  Tx
}

// Tx is the transaction that handlers use. Tx is safe for concurrent use, because a handler can still run
// when its batch is killed.
type Tx struct {
	mu   sync.Mutex
	open bool
	// The committed values, which do not change while the batch is open.
	base    map[string][]byte
	changed map[string]change
}

// change is a new value, or the removal of a value.
type change struct {
	value []byte
	gone  bool
}

// Get returns the value of key. The second result is false if there is no value.
func (t *Tx) Get(key string) ([]byte, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return nil, false, ErrTxDone
	}
	v, ok := t.get(key)
	return slices.Clone(v), ok, nil
}

// Set sets the value of key.
func (t *Tx) Set(key string, value []byte) error {
	return t.change(key, change{value: slices.Clone(value)})
}

// Delete removes the value of key, if there is one.
func (t *Tx) Delete(key string) error {
	return t.change(key, change{gone: true})
}

// Add adds n to a decimal number and returns the sum. A missing value counts as 0.
func (t *Tx) Add(key string, n int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return 0, ErrTxDone
	}
	if v, ok := t.get(key); ok {
		old, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", ErrNoNumber, key)
		}
		n += old
	}
	t.set(key, change{value: strconv.AppendInt(nil, n, 10)})
	return n, nil
}

func (t *Tx) change(key string, c change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return ErrTxDone
	}
	t.set(key, c)
	return nil
}

func (t *Tx) get(key string) ([]byte, bool) {
	if c, ok := t.changed[key]; ok {
		return c.value, !c.gone
	}
	v, ok := t.base[key]
	return v, ok
}

func (t *Tx) set(key string, c change) {
	if t.changed == nil {
		t.changed = map[string]change{}
	}
	t.changed[key] = c
}

// end closes the transaction and reports whether the transaction was open. Only a caller that gets true may commit, and
// must let the next batch begin after the commit.
func (t *Tx) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.open
	t.open = false
	return was
}

// mark adds a marker, unless the identity already has one. An existing marker is committed, or was added earlier in the
// same batch.
func (b *Batch) mark(i int, m *store.Mark) store.Verdict {
	key := markerKey{m.Scope, string(m.ID)}
	old, ok := b.store.state.markers[key]
	if !ok {
		old, ok = b.own[key]
	}
	if !ok {
		b.own[key] = marker{int64(m.As), m.Fingerprint}
		b.marks[i] = &markRecord{Scope: m.Scope, ID: slices.Clone(m.ID), Outcome: int64(m.As), Rule: m.Fingerprint.Version, Sum: m.Fingerprint.Sum}
		return store.Verdict{Kind: store.Fresh}
	}
	found := store.Found(old.outcome)
	if found.Kind == store.Seen && m.Other(old.fingerprint) {
		return store.Verdict{Kind: store.Conflict}
	}
	return found
}

// Tx returns the transaction, which all handlers of the batch share.
func (b *Batch) Tx(int) *Tx { return &b.tx }

// Commit writes the batch to the file as one record.
func (b *Batch) Commit(ctx context.Context, e store.Ending) store.Result {
	if !b.tx.end() {
		return failedResult(store.ClassAborted, ErrTxDone)
	}
	defer b.store.leave()
	if len(e.Rows) > 0 || len(e.Claims) > 0 {
		return failedResult(store.ClassPermanent, fmt.Errorf("filestore has no inbox: %w", semel.ErrUnsupported))
	}
	if err := ctx.Err(); err != nil {
		return failedResult(store.ClassContended, fmt.Errorf("%w: %w", ErrTurn, err))
	}
	for _, i := range e.Trim {
		b.marks[i] = nil
	}
	b.store.writing.Lock()
	defer b.store.writing.Unlock()
	unknown, err := b.store.write(b.record())
	switch {
	case unknown:
		return store.Result{Outcome: store.CommitUnknown, Culprit: store.NoCulprit, Err: err}
	case err != nil:
		return failedResult(b.store.Classify(err), err)
	}
	return store.Result{Outcome: store.Committed, Culprit: store.NoCulprit}
}

// record returns the record that the batch writes.
func (b *Batch) record() record {
	var r record
	for _, m := range b.marks {
		if m != nil {
			r.Marks = append(r.Marks, *m)
		}
	}
	for key, c := range b.tx.changed {
		r.Values = append(r.Values, valueRecord{Key: []byte(key), Value: c.value, Gone: c.gone})
	}
	return r
}

func failedResult(c store.Class, err error) store.Result {
	return store.Result{Outcome: store.NotCommitted, Class: c, Culprit: store.NoCulprit, Err: err}
}

// Rollback ends the batch without writing anything.
func (b *Batch) Rollback(context.Context) { b.Kill() }

// Kill ends the batch like Rollback. A handler that is still running gets ErrTxDone from its next call.
func (b *Batch) Kill() {
	if b.tx.end() {
		b.store.leave()
	}
}
