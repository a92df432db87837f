package storetest_test

import (
	"context"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// editsOtherwise is a store that edits bodies, or lists edits, wrongly.
type editsOtherwise struct {
	*memstore.Store
	edit func(s *memstore.Store, number, revision int64, body []byte, kind string, a store.Act) error
	tell func([]admin.StoredEdit) []admin.StoredEdit
}

func (s editsOtherwise) Edit(ctx context.Context, number, revision int64, body []byte, kind string, a store.Act) error {
	if s.edit == nil {
		return s.Store.Edit(ctx, number, revision, body, kind, a)
	}
	return s.edit(s.Store, number, revision, body, kind, a)
}

func (s editsOtherwise) Edits(ctx context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	all, err := s.Store.Edits(ctx, number, bodies)
	if s.tell != nil {
		all = s.tell(all)
	}
	return all, err
}

func editing(edit func(s *memstore.Store, number, revision int64, body []byte, kind string, a store.Act) error) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return editsOtherwise{Store: s, edit: edit} }
}

func telling(tell func([]admin.StoredEdit) []admin.StoredEdit) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return editsOtherwise{Store: s, tell: tell} }
}

// rowNow returns the current row with the given number.
func rowNow(s *memstore.Store, number int64) store.StoredRow {
	rows, _ := s.Rows(context.Background(), store.RowFilter{Numbers: []int64{number}})
	if len(rows) == 0 {
		return store.StoredRow{}
	}
	return rows[0]
}

var editFaults = []fault{
	{"edits ignore the revision", "trap_T46_a_row_that_has_changed_is_not_edited", editing(func(s *memstore.Store, number, _ int64, body []byte, kind string, a store.Act) error {
		return s.Edit(context.Background(), number, rowNow(s, number).Revision, body, kind, a)
	})},
	{"edits change a row that has taken effect", "trap_T46_a_row_that_has_taken_effect_is_not_edited", editing(func(s *memstore.Store, number, revision int64, body []byte, kind string, a store.Act) error {
		_ = s.Edit(context.Background(), number, revision, body, kind, a)
		return nil
	})},
	{"edits keep the type of the previous body", "G5_an_edit_stores_the_type_of_the_new_body", editing(func(s *memstore.Store, number, revision int64, body []byte, _ string, a store.Act) error {
		return s.Edit(context.Background(), number, revision, body, "", a)
	})},
	{"the previous body is not kept", "G5_an_edit_changes_the_body", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		for i := range all {
			all[i].Was = nil
		}
		return all
	})},
	{"only the last edit is kept", "G5_an_edit_changes_the_body", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		return all[max(len(all)-1, 0):]
	})},
	{"the reaper leaves the bodies before edits", "law_11_bodies_before_an_edit", telling(func(all []admin.StoredEdit) []admin.StoredEdit {
		for i := range all {
			all[i].Removed = false
		}
		return all
	})},
}

// faultyEraser is a store with a fault in erasures.
type faultyEraser struct {
	*memstore.Store
	erase func(s *memstore.Store, o admin.Erasing) (admin.Erased, error)
}

func (s faultyEraser) Erase(_ context.Context, o admin.Erasing) (admin.Erased, error) {
	return s.erase(s.Store, o)
}

func erasing(erase func(s *memstore.Store, o admin.Erasing) (admin.Erased, error)) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return faultyEraser{s, erase} }
}

// erased calls the correct Erase of the store.
func erased(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
	return s.Erase(context.Background(), o)
}

// remembers is a store that does not erase the bodies from before the edits of a row.
type remembers struct{ *memstore.Store }

func (r remembers) Edits(ctx context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	all, err := r.Store.Edits(ctx, number, bodies)
	for i := range all {
		if bodies && all[i].Removed {
			all[i].Was, all[i].Removed = []byte("Ana"), false
		}
	}
	return all, err
}

var erasureFaults = []fault{
	{"nothing is erased", "P4_an_identity_is_erased_with_all_its_rows", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.DryRun = true
		return erased(s, o)
	})},
	{"a dry run erases", "P4_a_dry_run_counts", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.DryRun = false
		return erased(s, o)
	})},
	{"the filter is ignored", "P4_each_filter_chooses", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.Filter = admin.ErasureFilter{}
		return erased(s, o)
	})},
	{"rows that are left are not reported", "P4_a_row_that_may_run_is_left_and_reported", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		done.Left = nil
		return done, err
	})},
	{"other generations are not erased", "P4_G2_an_identity_is_erased_in_each_generation", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		if o.Filter.Consumers == nil {
			o.Filter.Consumers = []string{"billing"}
		}
		return erased(s, o)
	})},
	{"bodies before edits are not erased", "P4_G5_bodies_before_edits_are_erased", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return remembers{s} }},
	{"results are not erased", "P4_a_result_is_erased", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		done.Next.Part = admin.ErasureDone
		return done, err
	})},
	{"only the first slice is erased", "P4_slices_visit_each_identity_once", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		if done.Next.Part == admin.ErasureRows {
			done.Next.Part = admin.ErasureResults
		}
		return done, err
	})},
	{"a discard is not recorded as an act", "P4_G6_the_chain_of_acts", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.Act.Verb = "discard"
		return erased(s, o)
	})},
}

// wrongSeals is a store that changes lines of the audit chain when the lines are read, or changes the request when
// lines are added.
type wrongSeals struct {
	*memstore.Store
	tell func([]admin.AuditedSeal) []admin.AuditedSeal
	ask  func(*admin.Sealing)
}

func (s wrongSeals) Seals(ctx context.Context, after int64, limit int) ([]admin.AuditedSeal, error) {
	all, err := s.Store.Seals(ctx, after, limit)
	if s.tell != nil {
		all = s.tell(all)
	}
	return all, err
}

func (s wrongSeals) Seal(ctx context.Context, o admin.Sealing) (admin.Sealed, error) {
	if s.ask != nil {
		s.ask(&o)
	}
	return s.Store.Seal(ctx, o)
}

// sealsTwice is a store that writes an audit record a second time whenever it adds that record to the audit chain.
type sealsTwice struct{ *memstore.Store }

func (s sealsTwice) Seal(ctx context.Context, o admin.Sealing) (admin.Sealed, error) {
	done, err := s.Store.Seal(ctx, o)
	if err == nil && done.Lines > 0 {
		all, _ := s.Store.Seals(ctx, 0, 0)
		last := all[len(all)-1].Act
		err = s.Record(ctx, last)
	}
	return done, err
}

// anyKey sets a key for the audit chain if no key was given.
func anyKey(o *admin.Sealing) {
	if len(o.Key) == 0 {
		o.Key = []byte("a key that the store makes up by itself")
	}
}

var auditFaults = []fault{
	{"lines are returned in another order", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal { slices.Reverse(all); return all }}
	}},
	{"an act is sealed twice", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return sealsTwice{s} }},
	{"a line lacks the reason", "G6_a_line_contains_its_act", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal {
			for i := range all {
				all[i].Act.Why = ""
			}
			return all
		}}
	}},
	{"a chain continues without its key", "G6_a_chain_with_a_key", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: anyKey}
	}},
	{"Continue begins a chain", "G6_continue_begins_no_chain_with_a_key", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: func(o *admin.Sealing) { o.Continue = false }}
	}},
	{"the limit of a seal is ignored", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: func(o *admin.Sealing) { o.Most = 0 }}
	}},
	{"concurrent acts are left out", "G6_acts_and_seals_at_once", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal {
			return slices.DeleteFunc(all, func(l admin.AuditedSeal) bool { return l.Sequence == 20 })
		}}
	}},
}

// pauseLifts is a store that removes the consumer's limit whenever the consumer is paused or resumed.
type pauseLifts struct{ *memstore.Store }

func (s pauseLifts) Pause(ctx context.Context, consumer string, paused bool, a store.Act) error {
	if err := s.Store.Pause(ctx, consumer, paused, a); err != nil {
		return err
	}
	return s.Limit(ctx, consumer, 0, a)
}

// oneControl is a store with the same control for all consumers.
type oneControl struct{ *memstore.Store }

func (s oneControl) Control(ctx context.Context, _ string) (admin.Control, error) {
	return s.Store.Control(ctx, "all")
}

func (s oneControl) Pause(ctx context.Context, _ string, paused bool, a store.Act) error {
	return s.Store.Pause(ctx, "all", paused, a)
}

func (s oneControl) Limit(ctx context.Context, _ string, perSecond int, a store.Act) error {
	return s.Store.Limit(ctx, "all", perSecond, a)
}

// onlyScopes is a store that lists only the consumer with the first scope.
type onlyScopes struct{ *memstore.Store }

func (s onlyScopes) Consumers(context.Context) ([]string, error) { return []string{"billing"}, nil }

// unrecorded is a store that returns only the audit records that belong to a row, so that the records of pauses and
// limits are missing.
type unrecorded struct{ *memstore.Store }

func (s unrecorded) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	all, err := s.Store.Acts(ctx, number, limit)
	var rows []store.Act
	for _, a := range all {
		if a.Row != 0 {
			rows = append(rows, a)
		}
	}
	return rows, err
}

// anyLimit is a store that accepts every limit, also a negative limit.
type anyLimit struct{ *memstore.Store }

func (s anyLimit) Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error {
	return s.Store.Limit(ctx, consumer, max(perSecond, -perSecond), a)
}
