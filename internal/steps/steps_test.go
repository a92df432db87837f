package steps_test

import (
	"testing"

	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/store"
)

func done(names ...string) (all []store.StepDone) {
	for _, name := range names {
		all = append(all, store.StepDone{Name: name})
	}
	return all
}

func TestRowsThatFitTheSteps(t *testing.T) {
	names := []string{"reserve", "charge", "ship"}
	for name, is := range map[string]struct {
		done []store.StepDone
		fits bool
	}{
		"C11_nothing_is_done":               {nil, true},
		"C11_the_first_ones_are":            {done("reserve", "charge"), true},
		"C11_all_are_and_one_was_left":      {done("reserve", "charge", "ship"), false},
		"C11_one_was_renamed":               {done("reserve", "pay"), false},
		"C11_two_have_changed_their_places": {done("charge"), false},
		"C11_more_are_done_than_there_are":  {done("reserve", "charge", "ship", "mail"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := steps.Fit(names, is.done); (err == nil) != is.fits {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOneMore(t *testing.T) {
	t.Run("C11_a_run_that_is_taken_back_changes_nothing", func(t *testing.T) {
		row := append(make([]store.StepDone, 0, 8), done("reserve")...)
		output := []byte("x")
		first := steps.With(row, "charge", output)
		output[0] = 'y'
		second := steps.With(row, "other", nil)
		if len(row) != 1 || first[1].Name != "charge" || string(first[1].Output) != "x" || second[1].Name != "other" || second[1].Output != nil {
			t.Errorf("%v, %v, %v", row, first, second)
		}
	})
	t.Run("C11_the_next_is_the_one_after_those_that_are_done", func(t *testing.T) {
		if row := done("reserve", "charge"); steps.Next(row) != 2 || !steps.Left([]string{"reserve", "charge", "ship"}, row) || steps.Left([]string{"reserve", "charge"}, row) {
			t.Error(steps.Next(row))
		}
	})
}
