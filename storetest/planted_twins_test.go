package storetest_test

import (
	"context"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// closesAll is a store whose discard of a first content closes the marker of its identity,
// whichever row has it.
type closesAll struct {
	broken
	closed map[string]bool
}

func (s *closesAll) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	for _, of := range rows {
		if r := rowNow(s.Store, of.Number); !r.Conflict {
			s.closed[r.Key.ID] = true
		}
	}
	return s.Store.Discard(ctx, a, rows...)
}

// judge answers as if the marker of a closed identity were closed.
func (s *closesAll) judge(m store.Mark, v store.Verdict) store.Verdict {
	switch {
	case !s.closed[string(m.ID)]:
		return v
	case m.Claim.Token != 0:
		return store.Verdict{Kind: store.ClaimLost}
	}
	return store.Verdict{Kind: store.Seen, Was: store.Discarded}
}

var twinFaults = []fault{
	{"a discard closes the marker of another row", "law_16_a_discard_of_the_first_row", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		c := &closesAll{broken: broken{Store: s}, closed: map[string]bool{}}
		c.verdict = c.judge
		return c
	}},
}
