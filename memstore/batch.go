package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

// batch is an open transaction. The store's mutex guards the fields of a batch.
type batch struct {
	store *Store
	tx    Tx
	marks []store.Mark
	// newMarkers has the identities of the markers that the batch wrote. A marker in Ending.Trim is removed again.
	newMarkers  []identity
	wroteMarker []bool // by mark: true if this batch wrote the marker
	// previous is nil if no mark has a previous identity. The field marks includes the marks for previous
	// identities.
	previous *formers.Batch
	// receivedMessages contains the messages of ReceiveIn, whose rows are written at the commit.
	receivedMessages []receivedMessage
	// The field streams contains the streams that the batch has locked. newStreams has those streams that had no
	// record before.
	streams    *streams.Batch
	newStreams []identity
	working    generations.Working
	ended      bool
	// The channel done is closed when the batch has ended. The first goroutine that waits for the end creates the
	// channel.
	done chan struct{}
}

var (
	errBusy   = errors.New("memstore: a copy in flight did not end in time")
	errKilled = errors.New("memstore: the batch was killed")
)

// Begin implements store.TxStore.
func (s *Store) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*Tx], []store.Verdict, error) {
	if err := s.ask("begin"); err != nil {
		return nil, nil, err
	}
	b, asked := s.open(), marks
	b.previous = formers.Of(marks)
	marks = b.previous.Marks(marks)
	b.wroteMarker = make([]bool, len(marks))
	b.newMarkers = make([]identity, 0, len(marks))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkCanBegin(o.Working); err != nil {
		return nil, nil, err
	}
	b.marks, b.working = marks, o.Working
	s.countBegun(b)
	verdicts, err := b.mark(ctx, o.MarkLock, marks)
	if err == nil {
		err = b.lookAtStreams(ctx, o.MarkLock, verdicts)
	}
	if err == nil {
		lines.Judge(marks, s.marksBehindRows(marks), verdicts)
	}
	if err != nil {
		b.end(false)
		if errors.Is(err, errStreamBusy) {
			return nil, nil, err
		}
		return nil, nil, &downError{"begin", err}
	}
	s.lookAtRows(b.previous, verdicts)
	answers := b.previous.Judge(verdicts)
	s.markExpired(asked, answers)
	return b, answers, nil
}

// lookAtRows looks for the conflict rows that the parameter former asks for, and tells former which of these rows
// exist.
func (s *Store) lookAtRows(former *formers.Batch, verdicts []store.Verdict) {
	for _, i := range former.Rows(verdicts) {
		m := &former.Marks(nil)[i]
		_, known := s.rowOf[rowKey{identity{m.Scope, string(m.ID)}, true, m.Fingerprint}]
		former.Knows(i, known)
	}
}

// MarkIn implements store.CallerTx. The markers are committed or rolled back together with tx, which the method Tx of a
// batch returned.
func (s *Store) MarkIn(ctx context.Context, tx *Tx, marks []store.Mark) ([]store.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.batch.ended {
		return nil, ErrTxDone
	}
	own := tx.batch.wroteMarker
	former := formers.Of(marks)
	all := former.Marks(marks)
	tx.batch.wroteMarker = make([]bool, len(all))
	defer func() { tx.batch.wroteMarker = own }()
	verdicts, err := tx.batch.mark(ctx, 0, all)
	if err != nil {
		return nil, &downError{"mark", err}
	}
	s.lookAtRows(former, verdicts)
	answers := former.Judge(verdicts)
	s.markExpired(marks, answers)
	for _, i := range former.Back() {
		delete(s.markers, identity{all[i].Scope, string(all[i].ID)})
	}
	return answers, nil
}

// ScopeIn implements store.CallerTx.
func (s *Store) ScopeIn(ctx context.Context, _ *Tx, consumer, source string, generation int64) (int64, error) {
	return s.Scope(ctx, consumer, source, generation)
}

// ReceiveIn implements store.CallerTx.
func (s *Store) ReceiveIn(ctx context.Context, tx *Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	verdicts, err := s.MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range verdicts {
		if v.Kind == store.Fresh {
			tx.batch.receivedMessages = append(tx.batch.receivedMessages, receivedMessage{marks[i], clone(messages[i]), reason})
		}
	}
	return verdicts, nil
}

// receivedMessage is a message that ReceiveIn has received. The row of the message is written to the inbox at the
// commit.
type receivedMessage struct {
	mark    store.Mark
	message *semel.Message
	// The field reason is set if the row will be parked, and is "" if the row will wait.
	reason semel.Reason
}

func (s *Store) open() *batch {
	b := &batch{store: s}
	b.tx.batch = b
	return b
}

// mark writes the markers in the order of their identities. The order of marks with the same identity does not change,
// so that the first of them is Fresh.
func (b *batch) mark(ctx context.Context, patience time.Duration, marks []store.Mark) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(marks))
	for _, i := range sortedIndexes(marks) {
		v, err := b.markOne(ctx, patience, marks[i])
		if err != nil {
			return nil, err
		}
		verdicts[i] = v
		b.wroteMarker[i] = v.Kind == store.Fresh && marks[i].Claim.Token == 0
	}
	return verdicts, nil
}

func sortedIndexes(marks []store.Mark) []int {
	order := make([]int, len(marks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &marks[i], &marks[j]
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.ID, b.ID), cmp.Compare(i, j))
	})
	return order
}

func (b *batch) markOne(ctx context.Context, patience time.Duration, m store.Mark) (store.Verdict, error) {
	s := b.store
	if m.Claim.Token != 0 {
		return s.checkClaim(m.Claim), b.checkOpen(ctx)
	}
	for {
		if err := b.checkOpen(ctx); err != nil {
			return store.Verdict{}, err
		}
		old, ok := s.markers[identity{m.Scope, string(m.ID)}]
		if ok && (old.owner == nil || old.owner == b) {
			return s.judge(m, old), nil
		}
		if !ok {
			id := identity{m.Scope, string(m.ID)}
			s.markers[id] = marker{m.Fingerprint, m.As, s.now(), b}
			b.newMarkers = append(b.newMarkers, id)
			return store.Verdict{Kind: store.Fresh}, nil
		}
		switch err := s.wait(ctx, old.owner, patience); {
		case errors.Is(err, errBusy):
			return store.Verdict{Kind: store.Busy}, nil
		case err != nil:
			return store.Verdict{}, err
		}
	}
}

func (b *batch) checkOpen(ctx context.Context) error {
	if b.ended {
		return errKilled
	}
	return ctx.Err()
}

// judge returns the store's answer (duplicate, conflict and so on) for a mark whose identity already has a marker.
func (s *Store) judge(m store.Mark, old marker) store.Verdict {
	found := store.Found(int64(old.outcome))
	if found.Kind == store.Seen && m.Other(old.fingerprint) {
		_, known := s.rowOf[rowKey{identity{m.Scope, string(m.ID)}, true, m.Fingerprint}]
		return store.Verdict{Kind: store.Conflict, Known: known}
	}
	return found
}

// Names of the store's tables in errors.
const (
	markersName = "the table of markers"
	rowsName    = "the table of rows"
)

// wait waits until the batch other has ended, for at most the duration patience; a patience of 0 means no limit. While
// wait waits, the store is unlocked.
func (s *Store) wait(ctx context.Context, other *batch, patience time.Duration) error {
	if other.done == nil {
		other.done = make(chan struct{})
	}
	done := other.done
	s.mu.Unlock()
	defer s.mu.Lock()
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-done:
		return nil
	case <-late:
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tx implements store.Batch. All messages share one Tx.
func (b *batch) Tx(int) *Tx { return &b.tx }

// TxAborted implements store.TxStatus.
func (b *batch) TxAborted() bool {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	return b.ended
}

// AbortCause implements store.TxStatus. A memstore does not record why a transaction was aborted, so the result is nil.
func (b *batch) AbortCause() error { return nil }

// ClassifyHandler implements store.TxStatus. A method of a Tx fails if a value is not a number, which is an error of
// the message, or if the batch has ended.
func (b *batch) ClassifyHandler(_ context.Context, err error) store.Class {
	switch class := b.store.Classify(err); {
	case class == store.ClassPermanent, class == store.ClassAborted && b.TxAborted():
		return class
	default:
		return store.ClassRetry
	}
}

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context, e store.Ending) store.Result {
	before := b.store.ask("commit-before")
	after := b.store.ask("commit-after")
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if b.ended {
		return refusedResult(store.ClassAborted, errKilled)
	}
	defer func() { b.end(false) }()
	if err := errors.Join(ctx.Err(), before); err != nil {
		return refusedResult(store.ClassDown, &downError{"commit", err})
	}
	if err := b.store.checkCanCommit(b.working); err != nil {
		return refusedResult(store.ClassDown, err)
	}
	if err := b.tx.check(); err != nil {
		return refusedResult(b.store.Classify(err), err)
	}
	if err := b.store.checkEndings(e.Claims); err != nil {
		return refusedResult(store.ClassClaimLost, err)
	}
	e, moved := b.streams.End(b.previous.End(e))
	b.trim(e.Trim)
	b.tx.apply()
	for i := range e.Rows {
		b.writeRow(&e.Rows[i])
	}
	for _, r := range b.receivedMessages {
		to := b.store.rowFor(rowKey{identity: identity{r.mark.Scope, string(r.mark.ID)}})
		state := store.StateReceived
		if r.reason != reasonname.None {
			state = store.StateParked
		}
		b.store.fill(to, r.mark, &store.Row{State: state, Reason: r.reason, Message: r.message})
		b.store.enter(to, string(r.mark.Line))
	}
	for _, to := range b.begunStreams(e.Trim) {
		b.store.begin(b, to)
	}
	freed := b.enterLines(&e)
	for i := range e.Claims {
		one := e.Claims[i]
		one.Call = store.CallNone // a batch ignores Call
		freed = b.store.endClaim(b.store.rowOfClaim(one.Claim), &one) || freed
	}
	for _, to := range moved {
		freed = b.store.move(to.Scope, string(to.Name), to.Last, to.Print) || freed
	}
	b.end(true)
	if after != nil {
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: after}
	}
	return store.Result{Outcome: store.Committed, Culprit: store.NoCulprit, Freed: freed || b.streams.Came()}
}

// begunStreams returns the streams that begin with the markers of this batch, or with the messages received in this
// batch.
func (b *batch) begunStreams(trim []int) []*streams.Stream {
	received := make([]store.Mark, len(b.receivedMessages))
	verdicts := make([]store.Verdict, len(b.receivedMessages))
	for i := range b.receivedMessages {
		received[i], verdicts[i] = b.receivedMessages[i].mark, store.Verdict{Kind: store.Fresh}
	}
	return append(b.streams.Begun(trim), streams.Received(received, verdicts)...)
}

func refusedResult(c store.Class, err error) store.Result {
	return store.Result{Outcome: store.NotCommitted, Class: c, Culprit: store.NoCulprit, Err: err}
}

func (b *batch) trim(marks []int) {
	for _, i := range marks {
		if b.wroteMarker[i] {
			delete(b.store.markers, identity{b.marks[i].Scope, string(b.marks[i].ID)})
			b.wroteMarker[i] = false
		}
	}
}

// Rollback implements store.Batch.
func (b *batch) Rollback(context.Context) { b.Kill() }

// Kill implements store.Batch. Kill rolls the batch back immediately, as a server does when its client disconnects.
func (b *batch) Kill() {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.end(false)
}

// end commits or removes the markers of the batch, and wakes batches that wait for the batch. If end is called twice,
// the second call does nothing. The caller has locked the store.
func (b *batch) end(committed bool) {
	if b.ended {
		return
	}
	b.ended = true
	b.store.countEnded(b)
	b.freeStreams(committed)
	for _, id := range b.newMarkers {
		m, ok := b.store.markers[id]
		switch {
		case !ok || m.owner != b: // the commit has removed this marker
		case committed:
			m.owner = nil
			b.store.markers[id] = m
		default:
			delete(b.store.markers, id)
		}
	}
	if b.done != nil {
		close(b.done)
	}
}
