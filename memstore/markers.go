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

// otherRows returns the other rows of the row's identity, which have other contents. The caller has locked the store.
func (s *Store) otherRows(r *row) (all []store.StoredRow) {
	for _, o := range s.rows {
		if o != r && o.key.identity == r.key.identity {
			all = append(all, o.StoredRow)
		}
	}
	return all
}

// owns reports whether the marker of the row's identity belongs to the row r (law 16). At most one row of an identity
// has the same content as the marker.
func (s *Store) owns(r *row) bool {
	m, there := s.markers[r.key.identity]
	if !there || m.fingerprint != r.Fingerprint {
		return false
	}
	same := rowKey{r.key.identity, true, r.Fingerprint}
	if r.Conflict {
		same = rowKey{identity: r.key.identity}
	}
	var others []sqlform.Twin
	if o := s.rowOf[same]; o != nil {
		others = []sqlform.Twin{o.toTwin()}
	}
	return m.toSQLForm().Of(r.toTwin(), others)
}

// toSQLForm converts a marker to the type that package sqlform needs.
func (m marker) toSQLForm() sqlform.Marker {
	return sqlform.Marker{Outcome: int64(m.outcome), Version: int64(m.fingerprint.Version), Sum: sqlform.Sum(m.fingerprint)}
}

// mayRun returns an error if the row must not be processed because of the other rows of its identity.
func (s *Store) mayRun(r *row, others []store.StoredRow) error {
	return admin.MayRun(r.Number, s.markers[r.key.identity].outcome, s.owns(r), others)
}

// takeMarker makes the marker of the row's identity belong to the row r, with the outcome Waiting. takeMarker returns
// an error if one of the other rows has not ended; see admin.MayRun.
func (s *Store) takeMarker(r *row, others []store.StoredRow) error {
	if r.State.Outcome() == store.Waiting && s.owns(r) && s.markers[r.key.identity].outcome == store.Waiting {
		return nil
	}
	if err := s.mayRun(r, others); err != nil {
		return err
	}
	// a conflict with a previous identity has no marker
	if _, marked := s.markers[r.key.identity]; !marked && !(r.Conflict && r.Reason == reasonname.FormerConflict) {
		return noMarker(r)
	}
	s.markers[r.key.identity] = marker{fingerprint: r.Fingerprint, outcome: store.Waiting, at: s.now()}
	return nil
}

// noMarker returns the error for a row whose identity has no marker, so that the outcome of its message is
// unknown.
func noMarker(r *row) error {
	return fmt.Errorf("row %d has no marker, so the outcome of its message is unknown: %w", r.Number, semel.ErrConflict)
}

// closeMarker is called for a row that is closed without an effect. If the marker belongs to the row, closeMarker sets
// the outcome of the marker. If the row is a conflict, the marker then belongs again to the row with the first content.
func (s *Store) closeMarker(r *row) {
	m := s.markers[r.key.identity]
	if !s.owns(r) || m.outcome == store.Applied {
		return
	}
	m.outcome, m.at = store.Discarded, s.now()
	if first := s.rowOf[rowKey{identity: r.key.identity}]; r.Conflict && first != nil {
		to := sqlform.Returned(m.toSQLForm(), []sqlform.Twin{first.toTwin()})
		m.outcome, m.fingerprint = store.Outcome(to.Outcome), sqlform.Fingerprint(uint8(to.Version), to.Sum)
	}
	s.markers[r.key.identity] = m
}

// toTwin converts a row to the type that package sqlform needs.
func (r *row) toTwin() sqlform.Twin {
	return sqlform.Twin{Number: r.Number, State: r.State, Conflict: r.Conflict, Version: int64(r.Fingerprint.Version), Sum: sqlform.Sum(r.Fingerprint)}
}

// endUnclaimable ends a row that could be claimed but whose marker is not waiting for it, because a claim of such a
// row could not be ended normally. The result says whether the row was ended. The caller has locked the store.
func (s *Store) endUnclaimable(r *row) bool {
	m, marked := s.markers[r.key.identity]
	if m.owner != nil || s.owns(r) && m.outcome == store.Waiting {
		return false
	}
	var others []sqlform.Twin
	for _, o := range s.rows {
		if o != r && o.key.identity == r.key.identity {
			others = append(others, o.toTwin())
		}
	}
	state, why := sqlform.Over(marked, m.toSQLForm(), s.owns(r), others)
	if state == "" {
		m.fingerprint = r.Fingerprint
		s.markers[r.key.identity] = m
		return false
	}
	r.State, r.token, r.DueAt, r.LockedUntil, r.Started = state, 0, time.Time{}, time.Time{}, 0
	if reason := sqlform.OverReason(state); reason != "" {
		r.Reason, r.LastError = semel.Reason(reason), why
		if r.FirstError == "" {
			r.FirstError = why
		}
	}
	s.touch(r)
	s.advance(r)
	return true
}

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.ask("look-up"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verdicts := make([]store.Verdict, len(marks))
	for i, m := range marks {
		verdicts[i] = s.committedVerdict(m)
	}
	return verdicts, nil
}

// committedVerdict returns the store's answer for a mark, from committed markers only. If the identity has no committed
// marker, the answer is Fresh.
func (s *Store) committedVerdict(m store.Mark) store.Verdict {
	if old, there := s.markers[identity{m.Scope, string(m.ID)}]; there && old.owner == nil {
		return s.judge(m, old)
	}
	return store.Verdict{Kind: store.Fresh}
}

// Preview implements admin.Previewer.
func (s *Store) Preview(_ context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	if err := s.lock("foretell"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	verdicts := make([]store.Verdict, len(all))
	for i := range all {
		verdicts[i].Kind = store.Fresh
		number, known := s.scopes[scope{consumer, all[i].Source, generation}]
		if !known {
			continue
		}
		mark := all[i].Mark
		mark.Scope = number
		verdicts[i] = s.committedVerdict(mark)
	}
	return verdicts, nil
}
