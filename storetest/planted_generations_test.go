package storetest_test

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// unsigned is a store that does not record who switches.
type unsigned struct{ *memstore.Store }

func (s unsigned) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	a.Who = ""
	return s.Store.SwitchGeneration(ctx, consumer, from, to, a)
}

// fenceless is a store that lifts the fences of another consumer, too.
type fenceless struct{ *memstore.Store }

func (s fenceless) LiftFences(ctx context.Context, consumer string) error {
	if err := s.Store.LiftFences(ctx, "other"); err != nil {
		return err
	}
	return s.Store.LiftFences(ctx, consumer)
}

// hoarding is a store that removes nothing of a dropped generation.
type hoarding struct{ *memstore.Store }

func (hoarding) ForgetGeneration(context.Context, string, int64, int) (int, error) { return 0, nil }

// confused is a store that foretells by the first derivation's markers.
type confused struct{ *memstore.Store }

func (s confused) Preview(ctx context.Context, consumer string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	return s.Store.Preview(ctx, consumer, 0, all)
}

var generationFaults = []fault{
	{"who switches is not recorded", "law_14_who_opens", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unsigned{s} }},
	{"the fences of all are lifted", "G2_the_fences_of_another", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return fenceless{s} }},
	{"a drop leaves messages", "P4_G2_of_a_dropped_generation", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return hoarding{s} }},
	{"all derivations are foretold as one", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return confused{s} }},
}
