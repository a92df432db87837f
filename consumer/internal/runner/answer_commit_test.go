package runner

import (
	"context"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// saying is a store that returns the same result for each transaction.
type saying struct {
	admin.QueueStore[int]
	result store.Result
}

func (s saying) CommitCombined(context.Context, store.TxOptions, []admin.QueuedBatch[int]) store.Result {
	return s.result
}

func TestTheResultsOfASharedTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		outcome store.CommitOutcome
		class   store.Class
		apart   bool
	}{
		"law_7_one_that_was_refused_is_written_apart":                 {store.NotCommitted, store.ClassPermanent, true},
		"law_5_one_whose_claim_is_lost_is_written_apart":              {store.NotCommitted, store.ClassClaimLost, true},
		"law_11_one_that_met_a_lock_is_written_apart":                 {store.NotCommitted, store.ClassContended, true},
		"C10_where_the_store_is_down_nobody_tries_it_for_each":        {store.NotCommitted, store.ClassDown, false},
		"law_1_what_may_be_committed_is_not_written_again_but_judged": {store.CommitUnknown, store.ClassDown, false},
		"law_1_nor_where_no_class_is_said":                            {store.CommitUnknown, store.ClassNone, false},
		"law_1_what_is_committed_is_so_for_each":                      {store.Committed, store.ClassNone, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &answering[int, int]{gatherer: saying{result: store.Result{Outcome: c.outcome, Class: c.class, Culprit: 1, Err: errApart}}}
			for n := 1; n <= 2; n++ {
				all, err := s.applyAll(t.Context(), make([]applying[int], n))
				if n == 2 && c.apart {
					if !isApart(err) {
						t.Errorf("of %d: %+v, %v", n, all, err)
					}
					continue
				}
				if err != nil || len(all) != n || all[n-1].Outcome != c.outcome || all[n-1].Class != c.class {
					t.Fatalf("of %d: %+v, %v", n, all, err)
				}
				if blamed := all[0].Culprit != store.NoCulprit; blamed != (n == 1) {
					t.Errorf("with %d messages one is blamed: %v", n, blamed)
				}
			}
		})
	}
}
