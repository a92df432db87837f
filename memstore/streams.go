package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

// stream is the stored position of a stream.
type stream struct {
	last  int64
	print semel.Fingerprint
	owner *batch // the open batch that has locked the stream
}

var errStreamBusy = errors.New("memstore: another batch has locked one of the streams")

// lookAtStreams locks the streams of a batch, and changes the store's answer for marks whose version is not the next
// version of the stream. The caller has locked the store.
func (b *batch) lookAtStreams(ctx context.Context, patience time.Duration, verdicts []store.Verdict) error {
	s := b.store
	b.streams = streams.Of(b.marks)
	for _, of := range b.streams.All() {
		key := identity{of.Scope, string(of.Name)}
		there := s.streams[key]
		for there != nil && there.owner != nil {
			if err := s.wait(ctx, there.owner, patience); errors.Is(err, errBusy) {
				return errStreamBusy
			} else if err != nil {
				return err
			}
			there = s.streams[key]
		}
		if err := b.checkOpen(ctx); err != nil {
			return err
		}
		if there == nil {
			there = &stream{last: of.Last}
			s.streams[key] = there
			b.newStreams = append(b.newStreams, key)
		}
		there.owner = b
		of.Last, of.Print = there.last, there.print
	}
	b.streams.Judge(verdicts)
	return nil
}

// freeStreams unlocks the batch's streams. If the batch did not commit, freeStreams removes the streams that
// the batch began.
func (b *batch) freeStreams(committed bool) {
	if !committed {
		for _, key := range b.newStreams {
			delete(b.store.streams, key)
		}
	}
	for _, of := range b.streams.All() {
		if there := b.store.streams[identity{of.Scope, string(of.Name)}]; there != nil && there.owner == b {
			there.owner = nil
		}
	}
}

// begin records the first version of a stream that has no record yet. If another batch has just created the
// stream, the record stays even if that batch does not commit.
func (s *Store) begin(b *batch, to *streams.Stream) {
	key := identity{to.Scope, string(to.Name)}
	switch there := s.streams[key]; {
	case there == nil:
		s.streams[key] = &stream{last: to.Last}
	case there.last == streams.Unbegun:
		there.last = to.Last
		if there.owner != nil && there.owner != b {
			there.owner.newStreams = slices.DeleteFunc(there.owner.newStreams, func(k identity) bool { return k == key })
		}
	}
}

// move sets the position of a stream at a commit. Rows that waited for the new position are unblocked.
func (s *Store) move(scope int64, name string, last int64, print semel.Fingerprint) (freed bool) {
	to := s.streams[identity{scope, name}]
	to.last, to.print = last, print
	for _, r := range s.rows {
		switch {
		case !r.blockedIn(scope, name) || r.Version > last+1:
		case r.State == store.StateParked && (!s.owns(r) || s.markers[r.key.identity].outcome != store.Parked):
			r.Reason = semel.ReasonConflict // the marker belongs to a message with other content
			s.touch(r)
		default:
			s.become(r, admin.RowFreed)
			r.DueAt, r.Reason = s.now(), reasonname.None
			freed = true
		}
	}
	return freed
}

// blockedIn reports whether a row waits for an earlier version of a stream. The result is also true if the row was
// parked because it has waited for the maximum time.
func (r *row) blockedIn(scope int64, name string) bool {
	waits := r.State == store.StateBlocked || r.State == store.StateParked && r.Reason == semel.ReasonGap
	return waits && r.Version > 0 && r.key.scope == scope && r.Stream == name
}

// Streams implements admin.Streams.
func (s *Store) Streams(_ context.Context, f admin.StreamFilter) ([]admin.StoredStream, error) {
	if err := s.lock("rows"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []admin.StoredStream
	for key, at := range s.streams {
		sc := s.scopeOf[key.scope-1]
		found := admin.StoredStream{Consumer: sc.consumer, Source: sc.source, Generation: sc.generation, Name: key.id, Last: at.last}
		for _, r := range s.rows {
			if !r.blockedIn(key.scope, key.id) {
				continue
			}
			found.Blocked++
			if found.First == 0 || r.Version < found.First {
				found.First, found.Row = r.Version, r.Number
			}
			if found.Oldest.IsZero() || r.ReceivedAt.Before(found.Oldest) {
				found.Oldest = r.ReceivedAt
			}
		}
		if (f.Consumer == "" || f.Consumer == found.Consumer) && (f.Stream == "" || f.Stream == found.Name) && (!f.Gaps || found.Blocked > 0) {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(x, y admin.StoredStream) int {
		return cmp.Or(strings.Compare(x.Consumer, y.Consumer), strings.Compare(x.Source, y.Source), strings.Compare(x.Name, y.Name))
	})
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	return all[:min(len(all), f.Limit)], nil
}

// SkipTo implements admin.Streams.
func (s *Store) SkipTo(ctx context.Context, of admin.StoredStream, to int64, a store.Act) error {
	if err := s.lock("rows"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	key := identity{s.scopes[scope{of.Consumer, of.Source, of.Generation}], of.Name}
	for s.streams[key] != nil && s.streams[key].owner != nil {
		if err := s.wait(ctx, s.streams[key].owner, 0); err != nil {
			return &downError{"skip", err}
		}
	}
	at := s.streams[key]
	if at == nil || at.last != of.Last || to <= of.Last {
		return fmt.Errorf("stream %q: %w", of.Name, semel.ErrChanged)
	}
	s.move(key.scope, key.id, to, semel.Fingerprint{})
	s.record(a, of.Row, "done")
	return nil
}
