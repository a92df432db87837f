package memstore

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// blocksLine reports whether a row blocks the later rows of its line (the queue of a key or lane).
func (r *row) blocksLine() bool {
	return r.Place > 0 && (r.State == store.StateParked || r.State.Outcome() == store.Waiting)
}

// waitsInLine reports whether a row waits only for earlier rows of its line (the queue of a key or lane).
func (r *row) waitsInLine() bool { return r.State == store.StateBlocked && r.Place > 0 }

// firstBlocker returns the first row of a line (the queue of a key or lane) that blocks later rows, or nil if no
// row blocks. The caller has locked the store.
func (s *Store) firstBlocker(line string) (first *row) {
	for _, r := range s.rows {
		if r.blocksLine() && r.Line == line && (first == nil || r.Place < first.Place) {
			first = r
		}
	}
	return first
}

// marksBehindRows returns the indexes of the marks whose line (the queue of a key or lane) has a waiting row.
func (s *Store) marksBehindRows(marks []store.Mark) (busy []int) {
	for _, i := range lines.Asked(marks) {
		if s.firstBlocker(string(marks[i].Line)) != nil {
			busy = append(busy, i)
		}
	}
	return busy
}

// enterLines adds the rows of an ending to their lines (queues of keys or lanes). The result came is true if a row that
// should have been blocked is the first row of its line.
func (b *batch) enterLines(e *store.Ending) (came bool) {
	for _, n := range lines.Entering(b.marks, e) {
		m := &b.marks[n.Mark]
		came = b.store.enter(b.store.rowFor(rowKey{identity: identity{m.Scope, string(m.ID)}}), n.Line) || came
	}
	return came
}

// enter appends a row to a line (the queue of a key or lane).
func (s *Store) enter(r *row, line string) (came bool) {
	if line == "" {
		return false
	}
	r.Place = 0
	behind := s.firstBlocker(line) != nil
	s.places++
	r.Line, r.Place = line, s.places
	switch {
	case r.State == store.StateParked:
	case behind:
		r.State, r.Reason, r.DueAt = store.StateBlocked, reasonname.Behind, time.Time{}
	case r.State == store.StateBlocked:
		r.State, r.Reason, r.DueAt = store.StateReceived, reasonname.None, s.now()
		return true
	}
	return false
}

// advance unblocks the first row of a line (the queue of a key or lane) after another row, the parameter left, was
// removed from the line.
func (s *Store) advance(left *row) (freed bool) {
	if left.Line == "" {
		return false
	}
	next := s.firstBlocker(left.Line)
	if next == nil || next.State != store.StateBlocked {
		return false
	}
	s.become(next, admin.RowFreed)
	next.DueAt, next.Reason = s.now(), reasonname.None
	return true
}

// First implements admin.Lines.
func (s *Store) First(_ context.Context, number int64) (int64, error) {
	if err := s.lock("rows"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r := s.rowByNumber(number)
	if r == nil || !r.blocksLine() {
		return 0, nil
	}
	return s.firstBlocker(r.Line).Number, nil
}

// Sweep implements admin.Lines.
func (s *Store) Sweep(context.Context) (freed int64, err error) {
	if err := s.lock("rows"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.waitsInLine() && s.firstBlocker(r.Line) == r {
			s.become(r, admin.RowFreed)
			r.DueAt, r.Reason = s.now(), reasonname.None
			freed++
		}
	}
	return freed, nil
}

// Dissolve implements admin.Lines.
func (s *Store) Dissolve(_ context.Context, consumer string) (rows int64, err error) {
	if err := s.lock("rows"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.blocksLine() && r.Key.Consumer == consumer {
			s.leave(r)
			rows++
		}
	}
	return rows, nil
}

// leave removes a row from its line (the queue of a key or lane). If the row was blocked, it can be claimed now.
func (s *Store) leave(r *row) {
	if r.State == store.StateBlocked {
		s.become(r, admin.RowFreed) // the row no longer waits for another row
		r.DueAt, r.Reason = s.now(), reasonname.None
	} else {
		s.touchWaiting(r)
	}
	r.Place = 0
}

// Skip implements admin.Lines.
func (s *Store) Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.eachRow(ctx, a, "done", rows, func(r *row) error {
		if err := admin.MaySkip(&r.StoredRow); err != nil {
			return err
		}
		r.cutAhead(s.now())
		s.leave(r)
		s.advance(r)
		return nil
	})
}
