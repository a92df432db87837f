package pgxstore

import (
	"testing"

	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// allNew records batches of a scope with only new messages.
func allNew(g *guesses, scope int64, batches int) {
	for range batches {
		g.recordNew(scope)
	}
}

// wantRun checks how many consecutive batches with only new messages are required before a guess.
func wantRun(t *testing.T, g *guesses, scope int64, takes int) {
	t.Helper()
	allNew(g, scope, takes-1)
	if g.shouldGuess(scope) {
		t.Errorf("a guess is made after %d batches", takes-1)
	}
	if allNew(g, scope, 1); !g.shouldGuess(scope) {
		t.Errorf("no guess is made after %d batches", takes)
	}
}

func TestGuessesFollowRunsOfNewBatches(t *testing.T) {
	t.Run("B12_after_a_run_of_them_of_this_scope", func(t *testing.T) {
		g := &guesses{}
		wantRun(t, g, 1, firstRun)
		wantRun(t, g, 2, firstRun)
	})
	t.Run("B12_a_copy_ends_the_run_and_costs_no_more", func(t *testing.T) {
		g := &guesses{}
		allNew(g, 1, firstRun)
		g.recordDuplicate(1, false)
		wantRun(t, g, 1, firstRun)
	})
	t.Run("B12_after_a_wrong_one_it_takes_twice_as_many_up_to_a_bound", func(t *testing.T) {
		g := &guesses{}
		for takes := firstRun; takes < 2*longestRun; takes *= 2 {
			wantRun(t, g, 1, min(takes, longestRun))
			g.recordDuplicate(1, true)
		}
		wantRun(t, g, 1, longestRun)
	})
	t.Run("B12_after_many_right_ones_it_takes_half_as_many_down_to_a_bound", func(t *testing.T) {
		g := &guesses{}
		g.recordDuplicate(1, true)
		g.recordDuplicate(1, true)
		allNew(g, 1, 12*firstRun) // the required number is reduced twice, each time after twice as many batches
		g.recordDuplicate(1, false)
		wantRun(t, g, 1, firstRun)
	})
	t.Run("law_11_B12_of_a_bounded_number_of_scopes", func(t *testing.T) {
		g := &guesses{}
		for scope := range int64(3 * mostGuessed) {
			g.recordNew(scope)
		}
		if len(g.byScope) > mostGuessed {
			t.Errorf("%d scopes are known", len(g.byScope))
		}
	})
	t.Run("B12_none_where_nobody_counts", func(t *testing.T) {
		if (*guesses)(nil).shouldGuess(1) {
			t.Error("it is likely")
		}
	})
}

func TestWhichMarksCanBeGuessed(t *testing.T) {
	s := &Store{guesses: &guesses{}}
	of := func(marks, claims int, former *formers.Batch) *marking {
		m := &marking{marks: make([]sqlform.Mark, marks), former: former}
		for i := range m.marks {
			m.marks[i].Mark = &store.Mark{Scope: 1}
		}
		for i := range marks - claims {
			m.order = append(m.order, i)
		}
		return m
	}
	for name, c := range map[string]struct {
		m  *marking
		is bool
	}{
		"B12_of_many":                         {of(leastGuessed, 0, nil), true},
		"B12_not_of_few":                      {of(leastGuessed-1, 0, nil), false},
		"B12_not_where_claims_are_among_them": {of(leastGuessed+1, 1, nil), false},
		"A7_B12_not_where_one_has_two":        {of(leastGuessed, 0, &formers.Batch{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if is := s.guessable(c.m); is != c.is {
				t.Errorf("it is %t", is)
			}
			for range firstRun {
				s.learn(c.m, 0)
			}
			if likely := s.guesses.shouldGuess(1); likely != c.is {
				t.Errorf("after a run of such, one is likely: %t", likely)
			}
			if s.learn(c.m, 1); s.guesses.shouldGuess(1) {
				t.Error("it is likely after a copy")
			}
		})
	}
}
