package storetest_test

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// erases is a store that erases in another way.
type erases struct {
	*memstore.Store
	erase func(s *memstore.Store, o admin.Erasing) (admin.Erased, error)
}

func (s erases) Erase(_ context.Context, o admin.Erasing) (admin.Erased, error) {
	return s.erase(s.Store, o)
}

func erasing(erase func(s *memstore.Store, o admin.Erasing) (admin.Erased, error)) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return erases{s, erase} }
}

// erased is what the store itself does.
func erased(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
	return s.Erase(context.Background(), o)
}

// remembers is a store whose edits keep what a body was when the row is erased.
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
	{"the filter is forgotten", "P4_each_filter_chooses", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.Filter = admin.ErasureFilter{}
		return erased(s, o)
	})},
	{"what is left is not told", "P4_what_may_still_be_worked_on", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		done.Left = nil
		return done, err
	})},
	{"other generations are left", "P4_G2_an_identity_is_erased_in_each_generation", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		if o.Filter.Consumers == nil {
			o.Filter.Consumers = []string{"billing"}
		}
		return erased(s, o)
	})},
	{"what is erased was not looked at for edits", "P4_G5_what_a_body_was_before_an_edit", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return remembers{s} }},
	{"results are not looked at", "P4_a_result_is_erased", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		done.Next.Part = admin.ErasureDone
		return done, err
	})},
	{"only the first slice is erased", "P4_slices_go_through_all", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		done, err := erased(s, o)
		if done.Next.Part == admin.ErasureRows {
			done.Next.Part = admin.ErasureResults
		}
		return done, err
	})},
	{"what is discarded is no act", "P4_G6_the_chain_of_acts", erasing(func(s *memstore.Store, o admin.Erasing) (admin.Erased, error) {
		o.Act.Verb = "discard"
		return erased(s, o)
	})},
}
