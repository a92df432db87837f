package storetest_test

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// editsOtherwise is a store that edits, or tells of edits, in another way.
type editsOtherwise struct {
	*memstore.Store
	edit func(s *memstore.Store, number, revision int64, body []byte, a store.Act) error
	tell func([]admin.StoredEdit) []admin.StoredEdit
}

func (s editsOtherwise) Edit(ctx context.Context, number, revision int64, body []byte, a store.Act) error {
	if s.edit == nil {
		return s.Store.Edit(ctx, number, revision, body, a)
	}
	return s.edit(s.Store, number, revision, body, a)
}

func (s editsOtherwise) Edits(ctx context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	all, err := s.Store.Edits(ctx, number, bodies)
	if s.tell != nil {
		all = s.tell(all)
	}
	return all, err
}

func editing(edit func(s *memstore.Store, number, revision int64, body []byte, a store.Act) error) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return editsOtherwise{Store: s, edit: edit} }
}

func telling(tell func([]admin.StoredEdit) []admin.StoredEdit) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return editsOtherwise{Store: s, tell: tell} }
}

// rowNow is the row of a number as it stands.
func rowNow(s *memstore.Store, number int64) store.StoredRow {
	rows, _ := s.Rows(context.Background(), store.RowFilter{Numbers: []int64{number}})
	if len(rows) == 0 {
		return store.StoredRow{}
	}
	return rows[0]
}

var editFaults = []fault{
	{"edits do not look at the revision", "trap_T46_nothing_is_edited_that_was_seen", editing(func(s *memstore.Store, number, _ int64, body []byte, a store.Act) error {
		return s.Edit(context.Background(), number, rowNow(s, number).Revision, body, a)
	})},
	{"edits change what has taken effect", "trap_T46_nothing_is_edited_that_has_taken_effect", editing(func(s *memstore.Store, number, revision int64, body []byte, a store.Act) error {
		_ = s.Edit(context.Background(), number, revision, body, a)
		return nil
	})},
	{"the body before is forgotten", "G5_an_edit_changes_the_body", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		for i := range all {
			all[i].Was = nil
		}
		return all
	})},
	{"only the last edit is kept", "G5_an_edit_changes_the_body", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		return all[max(len(all)-1, 0):]
	})},
	{"the bodies of edits stay", "law_11_bodies_before_an_edit", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		for i := range all {
			all[i].Removed = false
		}
		return all
	})},
}
