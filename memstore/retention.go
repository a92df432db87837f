package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// retentionState contains the retention policy and the progress of a consumer.
type retentionState struct {
	store.Retention
	progress time.Time
	lanes    map[string]laneAge
}

// laneAge is the last report about a lane: the age of the lane, and the time of the report.
type laneAge struct{ oldest, at time.Time }

// settledUntil returns a time before which all records of the lane are acked or dead-lettered.
func (l laneAge) settledUntil() time.Time {
	if l.oldest.IsZero() {
		return l.at
	}
	return l.oldest
}

// Retain implements store.Reaper.
func (s *Store) Retain(_ context.Context, r store.Retention) error {
	if err := s.lock("retention"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	k := s.retentions[r.Consumer]
	if k == nil {
		k = &retentionState{progress: s.now(), lanes: map[string]laneAge{}}
		s.retentions[r.Consumer] = k
	}
	k.Retention = r
	return nil
}

// Progressed implements store.Reaper.
func (s *Store) Progressed(_ context.Context, consumer string, lanes []source.LaneAge) error {
	if err := s.lock("retention"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	k := s.retentions[consumer]
	if k == nil {
		return nil
	}
	k.progress = s.now()
	for _, l := range lanes {
		k.lanes[l.Lane] = laneAge{l.Oldest, k.progress}
	}
	return nil
}

// ForgetLane implements store.Reaper.
func (s *Store) ForgetLane(_ context.Context, consumer, lane string, a store.Act) error {
	if err := s.lock("retention"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	k := s.retentions[consumer]
	if k == nil {
		return sqlform.NoLane(consumer, lane)
	}
	if _, known := k.lanes[lane]; !known {
		return sqlform.NoLane(consumer, lane)
	}
	delete(k.lanes, lane)
	s.record(a, 0, "done")
	return nil
}

// Retentions implements store.Reaper.
func (s *Store) Retentions(_ context.Context, consumer string) ([]store.StoredRetention, error) {
	if err := s.lock("retention"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []store.StoredRetention
	for _, name := range slices.Sorted(maps.Keys(s.retentions)) {
		if consumer == "" || consumer == name {
			all = append(all, s.retention(s.retentions[name]))
		}
	}
	return all, nil
}

func (s *Store) retention(k *retentionState) store.StoredRetention {
	r := store.StoredRetention{Retention: k.Retention, Progress: k.progress, Cutoff: s.cutoff(k)}
	if name, is := k.slowestLane(); is.Before(k.progress.Add(-timing.LaneTimeout)) && name != "" {
		r.Held, r.Oldest = name, is
	}
	r.Low = s.low[k.Consumer]
	dayAgo := s.now().Add(-24 * time.Hour)
	for id, m := range s.markers {
		if s.scopeOf[id.scope-1].consumer != k.Consumer || m.owner != nil {
			continue
		}
		if m.at.After(dayAgo) {
			r.LastDay++
		}
		if m.at.Before(r.Cutoff) && s.mayGo(id, m, r.Cutoff) && (r.First.IsZero() || m.at.Before(r.First)) {
			r.First = m.at
		}
	}
	return r
}

// slowestLane returns the lane with the oldest record that is not acked, and the time up to which the lane is
// acked.
func (k *retentionState) slowestLane() (name string, is time.Time) {
	for _, lane := range slices.Sorted(maps.Keys(k.lanes)) {
		if at := k.lanes[lane].settledUntil(); name == "" || at.Before(is) {
			name, is = lane, at
		}
	}
	return name, is
}

// cutoff returns the time before which markers may be removed, or zero if no marker may be removed. The caller has
// locked the store.
func (s *Store) cutoff(k *retentionState) time.Time {
	if k.Keep == 0 {
		return time.Time{}
	}
	from := s.now()
	if k.progress.Before(from) {
		from = k.progress
	}
	if name, is := k.slowestLane(); name != "" && is.Before(from) {
		from = is
	}
	return from.Add(-k.Keep)
}

// Removed implements store.Reaper.
func (s *Store) Removed(_ context.Context, consumer string) (before time.Time, err error) {
	if err := s.lock("retention"); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.low[consumer], nil
}

// Advance implements store.Reaper.
func (s *Store) Advance(_ context.Context, consumer string) (time.Time, error) {
	if err := s.lock("retention"); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	k := s.retentions[consumer]
	if k == nil {
		return time.Time{}, sqlform.NothingKept(consumer)
	}
	if err := sqlform.MayReap(k.Retention, false); err != nil {
		return time.Time{}, err
	}
	to := s.cutoff(k)
	if low, scoped := s.low[consumer]; scoped && low.Before(to) {
		s.low[consumer] = to
	}
	return to, nil
}

// markExpired changes the store's answer to Old for new messages that are older than the retention. The caller has
// locked the store.
func (s *Store) markExpired(marks []store.Mark, verdicts []store.Verdict) {
	lows, now := map[int64]sqlform.Low{}, s.now()
	for _, scope := range sqlform.Aged(marks) {
		if low := s.low[s.scopeOf[scope-1].consumer]; !low.IsZero() {
			lows[scope] = sqlform.Low{Before: low, Now: now}
		}
	}
	sqlform.JudgeAges(marks, lows, verdicts)
}

// Reap implements store.Reaper.
func (s *Store) Reap(_ context.Context, o store.Reaping) (store.Reaped, error) {
	if err := s.lock("retention"); err != nil {
		return store.Reaped{}, err
	}
	defer s.mu.Unlock()
	k := s.retentions[o.Consumer]
	if k == nil {
		return store.Reaped{}, sqlform.NothingKept(o.Consumer)
	}
	if err := sqlform.MayReap(k.Retention, true); err != nil {
		return store.Reaped{}, err
	}
	at := s.cutoff(k)
	before := at // the low-water mark can be later: the retention may have been increased, or the clock set back
	if low := s.low[o.Consumer]; low.Before(at) && !o.DryRun {
		before = low
	}
	var due []identity
	if k.Keep > 0 && !o.After.Done {
		due = s.oldMarkers(o, before)
	}
	done := store.Reaped{Next: store.ReapMark{Done: len(due) <= o.Most}}
	for _, id := range due[:min(len(due), o.Most)] {
		m := s.markers[id]
		done.Next.Scope, done.Next.At, done.Next.ID = id.scope, m.at.UnixMicro(), id.id
		if !s.mayGo(id, m, before) {
			done.Kept++
			continue
		}
		done.Markers++
		done.Rows += s.remove(id, o.DryRun)
	}
	done.Bodies = s.removeBodies(k, o)
	return done, nil
}

// oldMarkers returns the old markers after the current position of the pass, in the order of the pass.
func (s *Store) oldMarkers(o store.Reaping, before time.Time) (due []identity) {
	place := func(id identity) store.ReapMark {
		return store.ReapMark{Scope: id.scope, At: s.markers[id].at.UnixMicro(), ID: id.id}
	}
	order := func(x, y store.ReapMark) int {
		return cmp.Or(cmp.Compare(x.Scope, y.Scope), cmp.Compare(x.At, y.At), cmp.Compare(x.ID, y.ID))
	}
	for id, m := range s.markers {
		if s.scopeOf[id.scope-1].consumer == o.Consumer && m.owner == nil && m.at.Before(before) && order(place(id), o.After) > 0 {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(x, y identity) int { return order(place(x), place(y)) })
	return due
}

// mayGo reports whether a marker may be removed: its message and all rows of its identity ended before the
// cutoff.
func (s *Store) mayGo(id identity, m marker, cutoff time.Time) bool {
	if !sqlform.Ended(m.outcome) {
		return false
	}
	for _, r := range s.rows {
		if r.key.identity == id && !(r.State.Ended() && r.ChangedAt.Before(cutoff)) {
			return false
		}
	}
	return true
}

// remove removes a marker with its rows, and returns the number of removed rows.
func (s *Store) remove(id identity, dry bool) (rows int64) {
	for _, r := range s.rows {
		if r.key.identity == id {
			rows++
		}
	}
	if dry {
		return rows
	}
	delete(s.markers, id)
	delete(s.results, id)
	s.rows = slices.DeleteFunc(s.rows, func(r *row) bool {
		if r.key.identity == id {
			delete(s.rowOf, r.key)
		}
		return r.key.identity == id
	})
	return rows
}

// removeBodies removes the bodies of rows that ended longer ago than bodies are kept.
func (s *Store) removeBodies(k *retentionState, o store.Reaping) (bodies int64) {
	cutoff := s.now().Add(-k.Bodies)
	for _, r := range s.rows {
		ended := r.State == store.StateCompleted || r.State == store.StateDiscarded
		if k.Bodies == 0 || bodies == int64(o.Most) || r.Key.Consumer != k.Consumer || !ended || r.BodyRemoved || !r.ChangedAt.Before(cutoff) {
			continue
		}
		bodies++
		if !o.DryRun {
			r.Message.Body, r.Size, r.BodyRemoved = nil, 0, true
			for i := range r.edits {
				r.edits[i].Was = nil
			}
		}
	}
	return bodies
}
