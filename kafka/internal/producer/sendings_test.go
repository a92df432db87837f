package producer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestASendingIsRememberedForWhoComesAgain(t *testing.T) {
	which, now := Publication{semel.Key{Consumer: "billing", ID: "a"}, "orders"}, time.Now()
	for name, c := range map[string]struct {
		end  func(*Sending)
		ago  time.Duration
		anew bool
	}{
		"E3_one_that_is_under_way_is_waited_for":    {func(*Sending) {}, time.Hour, false},
		"E3_one_that_was_written_a_moment_ago":      {func(s *Sending) { s.Answer(nil) }, sendingAge - 1, false},
		"one_that_was_written_long_ago_is_not":      {func(s *Sending) { s.Answer(nil) }, sendingAge, true},
		"one_that_failed_is_made_again":             {func(s *Sending) { s.Answer(errors.New("refused")) }, 0, true},
		"one_that_was_taken_back_is_made_again_too": {func(s *Sending) { s.Answer(context.Canceled) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSendings()
			first, begun := s.Begin(t.Context(), which, 0, now.Add(-c.ago))
			c.end(first)
			second, anew := s.Begin(t.Context(), which, 0, now)
			if !begun || anew != c.anew || anew == (first == second) {
				t.Errorf("begun: %t; anew: %t", begun, anew)
			}
		})
	}
	t.Run("law_11_no_more_than_a_bound_of_what_has_ended", func(t *testing.T) {
		s := NewSendings()
		waits, _ := s.Begin(t.Context(), which, 0, now)
		for n := range 3 * mostSendings {
			one, _ := s.Begin(t.Context(), Publication{semel.Key{ID: fmt.Sprint(n)}, "orders"}, 0, now)
			one.Answer(nil)
		}
		if len(s.all) > mostSendings || s.all[which] != waits {
			t.Errorf("%d are remembered; the one under way is: %t", len(s.all), s.all[which] == waits)
		}
	})
}
