package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

var _ admin.Editor = (*Store)(nil)

// Edit implements admin.Editor.
func (s *Store) Edit(ctx context.Context, number, revision int64, body []byte, a store.Act) error {
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
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
	r.Message, r.Size = &message, len(body)
	s.touchWaiting(r)
	s.record(admin.EditAct(a, was, body, nil), number, "done")
	return nil
}

// Edits implements admin.Editor.
func (s *Store) Edits(_ context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	if err := s.ask("rows"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.row(number)
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
