package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/erasure"
	"github.com/semel-go/semel/internal/reasonname"
)

var _ admin.Eraser = (*Store)(nil)

// Erase implements admin.Eraser. A memstore has no locked rows, because an open batch writes its rows only at the
// commit.
func (s *Store) Erase(ctx context.Context, o admin.Erasing) (done admin.Erased, err error) {
	o.Most = cmp.Or(max(o.Most, 0), 50)
	if err := erasure.Fits(&o.Filter); err != nil {
		return done, err
	}
	if err := s.lock("erase"); err != nil {
		return done, err
	}
	defer s.mu.Unlock()
	walk := erasure.Walk{Erasing: &o, Held: erasing{s, &o}, Done: &done}
	switch o.After.Part {
	case admin.ErasureRows:
		err = s.eraseRows(ctx, &walk)
	case admin.ErasureResults:
		err = s.eraseResults(ctx, &walk)
	default:
		done.Next.Part = admin.ErasureDone
	}
	return done, err
}

// Scrub implements admin.Eraser.
func (*Store) Scrub(context.Context, bool) error { return nil }

func (s *Store) eraseRows(ctx context.Context, w *erasure.Walk) error {
	w.Done.Next = erasure.Next(w.Erasing)
	looked := 0
	for _, r := range slices.Clone(s.rows[s.place(w.After.Number+1):]) {
		if r.Reason == reasonname.Erased || !w.Filter.OfRow(&r.StoredRow) {
			continue
		}
		if looked == w.Most {
			break
		}
		looked++
		where := admin.ErasureMark{Part: admin.ErasureRows, Number: r.Number}
		if err := w.Found(ctx, where, erasure.Identity{Key: r.Key}, time.Time{}); err != nil {
			return err
		}
		if looked == w.Most {
			w.Done.Next = where
		}
	}
	return nil
}

func (s *Store) eraseResults(ctx context.Context, w *erasure.Walk) error {
	w.Done.Next = erasure.Next(w.Erasing)
	all := slices.SortedFunc(maps.Keys(s.results), func(a, b identity) int { return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.id, b.id)) })
	looked := 0
	for _, id := range all {
		after := cmp.Or(cmp.Compare(id.scope, w.After.Number), cmp.Compare(id.id, string(w.After.ID))) > 0
		key := s.keyOf(id)
		if _, there := s.results[id]; !there || !after || !w.Filter.OfKey(key) {
			continue
		}
		looked++
		where := admin.ErasureMark{Part: admin.ErasureResults, Number: id.scope, ID: []byte(id.id)}
		if err := w.Found(ctx, where, erasure.Identity{Key: key}, s.markers[id].at); err != nil {
			return err
		}
		if looked == w.Most {
			w.Done.Next = where
			break
		}
	}
	return nil
}

func (s *Store) keyOf(id identity) semel.Key {
	sc := s.scopeOf[id.scope-1]
	return semel.Key{Consumer: sc.consumer, Source: sc.source, ID: id.id}
}

// erasing implements erasure.Held. While an erasing is used, Erase has locked the store.
type erasing struct {
	*Store
	o *admin.Erasing
}

// Generations implements erasure.Held.
func (e erasing) Generations(_ context.Context, consumer string) (numbers []int64, _ error) {
	for _, g := range e.generations[consumer] {
		numbers = append(numbers, g.Number)
	}
	return numbers, nil
}

// Rows implements erasure.Held.
func (e erasing) Rows(_ context.Context, of erasure.Identity) ([]erasure.Row, error) {
	return e.selectRows(func(r *row) bool { return r.Key == of.Key }), nil
}

// Caused implements erasure.Held.
func (e erasing) Caused(_ context.Context, cause []byte) ([]erasure.Row, error) {
	return e.selectRows(func(r *row) bool { return r.cause == string(cause) }), nil
}

func (e erasing) selectRows(chosen func(*row) bool) (all []erasure.Row) {
	for _, r := range e.rows {
		if chosen(r) {
			all = append(all, erasure.Row{StoredRow: shownRow(r, false)})
		}
	}
	return all
}

// Lock implements erasure.Held.
func (e erasing) Lock(context.Context, int64) (bool, error) { return true, nil }

// EraseRow implements erasure.Held.
func (e erasing) EraseRow(_ context.Context, erased *erasure.Row) error {
	if e.o.DryRun {
		return nil
	}
	r := e.rowByNumber(erased.Number)
	was := r.Message
	r.Message = &semel.Message{Topic: was.Topic, Attributes: semel.Attributes{Type: was.Attributes.Type}}
	r.Message.Origin.Partition, r.Message.Origin.Offset = was.Origin.Partition, was.Origin.Offset
	r.Reason, r.BodyRemoved, r.Size = reasonname.Erased, true, 0
	for i := range r.edits {
		r.edits[i].Was = nil
	}
	r.FirstError, r.LastError, r.Steps, r.Line, r.Place = "", "", nil, "", 0
	e.touch(r)
	return nil
}

// EraseKept implements erasure.Held.
func (e erasing) EraseKept(_ context.Context, of erasure.Identity) (results, keys int64, err error) {
	for id := range e.results {
		if e.keyOf(id) == of.Key {
			results++
			if !e.o.DryRun {
				delete(e.results, id)
			}
		}
	}
	return results, 0, nil
}

// Record implements erasure.Held.
func (e erasing) Record(_ context.Context, number int64, result string) error {
	if !e.o.DryRun {
		e.record(e.o.Act, number, result)
	}
	return nil
}
