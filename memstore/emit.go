package memstore

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

var _ admin.Emitter = (*Store)(nil)

// Emit implements admin.Emitter.
func (s *Store) Emit(ctx context.Context, o admin.EmitOptions) (all admin.Emitted, err error) {
	if len(o.Causes) == 0 {
		return all, nil
	}
	if err := s.ask("emit-before"); err != nil {
		return all, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Clone(s.rows) {
		if r.cause == "" || !slices.ContainsFunc(o.Causes, func(cause []byte) bool { return string(cause) == r.cause }) {
			continue
		}
		one, err := s.emit(ctx, &o, r)
		if err != nil {
			return all, err
		}
		all = all.Plus(one)
	}
	return all, s.ask("emit-after")
}

// emit has one row sent again, or says why not; the store's lock is held.
func (s *Store) emit(ctx context.Context, o *admin.EmitOptions, r *row) (admin.Emitted, error) {
	if _, err := s.find(ctx, r.Number, r.Revision); err != nil {
		return admin.Emitted{Left: 1}, ctx.Err()
	}
	now := s.now()
	one := calls.EmitAgain(o, &calls.Sent{Sender: r.Key.Consumer, State: r.State, Started: r.CallsStarted, Finished: r.CallsFinished,
		Since: calls.Ago(now.Sub(r.CalledAt)), Ended: now.Sub(r.ended), BodyRemoved: r.BodyRemoved})
	switch {
	case one.Again == 0:
		return one, nil
	case r.Conflict || s.markers[r.key.identity].outcome != store.Applied:
		return admin.Emitted{Left: 1}, nil
	}
	s.become(r, store.RowEmitted)
	r.ReceivedAt = now // what waits is as old as that
	r.DueAt, r.again, r.called, r.Place = now, true, 0, 0
	r.Attempts, r.Started, r.CallsFinished = 0, 0, r.CallsStarted-1
	r.Reason, r.FirstError, r.LastError = semel.ReasonNone, "", ""
	return one, nil
}
