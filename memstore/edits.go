package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

var _ admin.Editor = (*Store)(nil)

// Edit implements admin.Editor.
func (s *Store) Edit(ctx context.Context, number, revision int64, body []byte, kind string, a store.Act) error {
	if err := s.lock("rows"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	if err := admin.MayEdit(&r.StoredRow, body); err != nil {
		return err
	}
	if err := admin.MayRun(number, s.markers[r.key.identity].outcome, false, nil); err != nil {
		return err
	}
	was := r.Message.Body
	message := *r.Message
	message.Body = append([]byte{}, body...)
	r.edits = append(r.edits, admin.StoredEdit{
		Number: len(r.edits) + 1, Who: a.Who, At: s.now(), Was: was,
		Before: sha256.Sum256(was), After: sha256.Sum256(body), SizeBefore: len(was), SizeAfter: len(body),
	})
	change := admin.Change{Before: was, After: body}
	if kind != "" {
		change.TypeBefore, change.TypeAfter = message.Type(), kind
		message.Attributes.Type = kind
	}
	r.Message, r.Size = &message, len(body)
	s.touchWaiting(r)
	s.record(admin.EditAct(a, change), number, "done")
	return nil
}

// Edits implements admin.Editor.
func (s *Store) Edits(_ context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	if err := s.lock("rows"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.rowByNumber(number)
	if r == nil {
		return nil, nil
	}
	all := append([]admin.StoredEdit(nil), r.edits...)
	for i := range all {
		e := &all[i]
		if e.Removed = r.BodyRemoved; !bodies || e.Removed {
			e.Was = nil
		} else {
			e.Was = bytes.Clone(e.Was)
		}
	}
	return all, nil
}

var _ admin.Emitter = (*Store)(nil)

// Emit implements admin.Emitter.
func (s *Store) Emit(ctx context.Context, o admin.EmitOptions) (all admin.Emitted, err error) {
	if len(o.Causes) == 0 {
		return all, nil
	}
	if err := s.lock("emit-before"); err != nil {
		return all, err
	}
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

// emit makes a row due again and returns which counter of admin.Emitted counts the row. The caller has locked the
// store.
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
	s.become(r, admin.RowEmitted)
	r.ReceivedAt = now // the waiting time of the row counts from now
	r.DueAt, r.again, r.called, r.Place = now, true, 0, 0
	r.Attempts, r.Started, r.CallsFinished = 0, 0, r.CallsStarted-1
	r.Reason, r.FirstError, r.LastError = reasonname.None, "", ""
	return one, nil
}
