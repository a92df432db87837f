package storetest_test

import (
	"context"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// wrongSeals tells another chain than it has.
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

// sealsTwice records an act again whenever it seals one.
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

// anyKey goes on with a key of its own where none was given.
func anyKey(o *admin.Sealing) {
	if len(o.Key) == 0 {
		o.Key = []byte("a key that the store makes up by itself")
	}
}

var auditFaults = []fault{
	{"lines are told in another order", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal { slices.Reverse(all); return all }}
	}},
	{"an act is sealed twice", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return sealsTwice{s} }},
	{"a line does not say why", "G6_a_line_has_its_act", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal {
			for i := range all {
				all[i].Act.Why = ""
			}
			return all
		}}
	}},
	{"who has no key goes on", "G6_a_chain_under_a_key", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: anyKey}
	}},
	{"a chain is begun that may only be continued", "G6_a_chain_under_a_key_that_is_only_continued", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: func(o *admin.Sealing) { o.Continue = false }}
	}},
	{"all is sealed at once, whatever is asked", "G6_acts_are_sealed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, ask: func(o *admin.Sealing) { o.Most = 0 }}
	}},
	{"acts are left out beside others", "G6_acts_and_seals_at_once", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongSeals{Store: s, tell: func(all []admin.AuditedSeal) []admin.AuditedSeal {
			return slices.DeleteFunc(all, func(l admin.AuditedSeal) bool { return l.Sequence == 20 })
		}}
	}},
}
