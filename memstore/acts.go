package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// find returns the row if it has the given revision, after every open batch with the same identity has ended. The
// caller has locked the store.
func (s *Store) find(ctx context.Context, number, revision int64) (*row, error) {
	for {
		r := s.rowByNumber(number)
		if r == nil || r.Revision != revision {
			return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
		}
		other := s.markers[r.key.identity].owner
		if other == nil {
			return r, s.understands(r)
		}
		if err := s.wait(ctx, other, 0); err != nil {
			return nil, &downError{"row", err}
		}
	}
}

// understands returns an error if a newer release wrote the state of the row, or the outcome of its marker, and the
// value is unknown to this release.
func (s *Store) understands(r *row) error {
	acted := sqlform.Acted{Number: r.Number, State: string(r.State), Outcome: int64(store.Parked), Inbox: rowsName, Markers: markersName}
	if m, there := s.markers[r.key.identity]; there {
		acted.Outcome = int64(m.outcome)
	}
	_, err := acted.Understood()
	return err
}

func (s *Store) record(a store.Act, row int64, result string) {
	a.Number, a.Row, a.Result, a.At = int64(len(s.acts))+1, row, result, s.now()
	s.acts = append(s.acts, a)
}

// Record implements admin.Recorder.
func (s *Store) Record(_ context.Context, a store.Act) error {
	if err := s.lock("rows"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.record(a, a.Row, "done")
	return nil
}

// Discard implements store.Inbox.
func (s *Store) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.eachRow(ctx, a, "done", rows, func(r *row) error {
		if err := admin.MayAct(admin.RowDiscarded, &r.StoredRow, false); err != nil {
			return err
		}
		s.closeMarker(r)
		r.State, r.token, r.DueAt, r.LockedUntil = store.StateDiscarded, 0, time.Time{}, time.Time{}
		s.touch(r)
		s.advance(r)
		return nil
	})
}

// eachRow calls the function do for each row, and writes an audit record for each row for which do succeeds. The result
// has an error or nil for each row.
func (s *Store) eachRow(ctx context.Context, a store.Act, result string, rows []store.RowRevision, do func(*row) error) []error {
	errs := make([]error, len(rows))
	for i, r := range rows {
		errs[i] = s.act(ctx, r, a, result, do)
	}
	return errs
}

// act calls the function do for a row that has the given revision, and writes an audit record if do succeeds.
func (s *Store) act(ctx context.Context, of store.RowRevision, a store.Act, result string, do func(*row) error) error {
	if err := s.lock("rows"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(ctx, of.Number, of.Revision)
	if err == nil {
		err = do(r)
	}
	if err == nil {
		s.record(a, of.Number, result)
	}
	return err
}

// Requeue implements admin.Requeuer.
func (s *Store) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.requeueRows(ctx, admin.RowRetried, a, rows)
}

// Release implements admin.Requeuer.
func (s *Store) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.requeueRows(ctx, admin.RowReleased, a, rows)
}

// Reopen implements admin.Requeuer.
func (s *Store) Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.eachRow(ctx, a, "done", rows, func(r *row) error {
		if err := admin.MayAct(admin.RowReopened, &r.StoredRow, false); err != nil {
			return err
		}
		if err := s.mayRun(r, s.otherRows(r)); err != nil {
			return err
		}
		if _, marked := s.markers[r.key.identity]; !marked && !r.Conflict {
			return noMarker(r)
		}
		s.become(r, admin.RowReopened)
		r.Reason, r.Place = admin.ReopenedReason(r.Reason), 0
		return nil
	})
}

// requeueRows schedules rows to run now.
func (s *Store) requeueRows(ctx context.Context, e admin.RowEvent, a store.Act, rows []store.RowRevision) []error {
	return s.eachRow(ctx, a, "done", rows, func(r *row) error {
		if err := admin.MayAct(e, &r.StoredRow, !r.DueAt.After(s.now())); err != nil {
			return err
		}
		if err := s.takeMarker(r, s.otherRows(r)); err != nil {
			return err
		}
		if r.State == store.StateDeadLettered {
			r.Place = 0 // the row is removed from its queue
		}
		r.State, _ = admin.After(r.State, e)
		r.token, r.DueAt, r.LockedUntil = 0, s.now(), time.Time{}
		s.touch(r)
		return nil
	})
}

// Acts implements store.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(_ context.Context, number int64, limit int) ([]store.Act, error) {
	if limit <= 0 {
		limit = 1000
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Act
	for _, a := range s.acts {
		if len(found) < limit && (number == 0 || a.Row == number) {
			found = append(found, a)
		}
	}
	return found, nil
}

// Suppress implements admin.Requeuer.
func (s *Store) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.eachRow(ctx, a, "done", rows, func(r *row) error {
		if err := admin.MayAct(admin.RowSuppressed, &r.StoredRow, false); err != nil {
			return err
		}
		if m := s.markers[r.key.identity]; s.owns(r) && m.outcome != store.Applied {
			s.setOutcome(r.key.identity, store.Parked)
		}
		r.State, r.Reason, r.DueAt = store.StateParked, reasonname.Suppressed, time.Time{}
		s.touch(r)
		return nil
	})
}
