package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestASendingIsRememberedForWhoComesAgain(t *testing.T) {
	which, now := publication{semel.Key{Consumer: "billing", ID: "a"}, theTopic}, time.Now()
	for name, c := range map[string]struct {
		end  func(*sending)
		ago  time.Duration
		anew bool
	}{
		"E3_one_that_is_under_way_is_waited_for":    {func(*sending) {}, time.Hour, false},
		"E3_one_that_was_written_a_moment_ago":      {func(s *sending) { s.answer(nil) }, sendingAge - 1, false},
		"one_that_was_written_long_ago_is_not":      {func(s *sending) { s.answer(nil) }, sendingAge, true},
		"one_that_failed_is_made_again":             {func(s *sending) { s.answer(errUnconfirmed) }, 0, true},
		"one_that_was_taken_back_is_made_again_too": {func(s *sending) { s.answer(context.Canceled) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := sendings{all: map[publication]*sending{}}
			first, begun := s.begin(t.Context(), which, 0, now.Add(-c.ago))
			c.end(first)
			second, anew := s.begin(t.Context(), which, 0, now)
			if !begun || anew != c.anew || anew == (first == second) {
				t.Errorf("begun: %t; anew: %t", begun, anew)
			}
		})
	}
	t.Run("law_11_no_more_than_a_bound_of_what_has_ended", func(t *testing.T) {
		s := sendings{all: map[publication]*sending{}}
		waits, _ := s.begin(t.Context(), which, 0, now)
		for n := range 3 * mostSendings {
			one, _ := s.begin(t.Context(), publication{semel.Key{ID: fmt.Sprint(n)}, theTopic}, 0, now)
			one.answer(nil)
		}
		if len(s.all) > mostSendings || s.all[which] != waits {
			t.Errorf("%d are remembered; the one under way is: %t", len(s.all), s.all[which] == waits)
		}
	})
}

func TestWhatAPublisherToldIsNotRemembered(t *testing.T) {
	bubble(t, "law_11_and_whoever_publishes_again_writes_again", func(t *testing.T) {
		w := newWorld(t, 1)
		p, _ := w.publisher(nil)
		for range 2 {
			if err := p.Publish(t.Context(), paid("a")); err != nil {
				t.Fatal(err)
			}
		}
		if all := w.ids(theTopic); strings.Join(all, " ") != "a a" || len(p.sendings.all) != 0 {
			t.Errorf("the records are %v, and %d sendings are remembered", all, len(p.sendings.all))
		}
	})
}

func TestWhatWasTakenBackWasNotSent(t *testing.T) {
	t.Run("E3_though_others_were_sent_meanwhile", func(t *testing.T) {
		p, err := NewPublisher(quietly(PublisherConfig{Brokers: []string{"127.0.0.1:1"}, Topic: theTopic}))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		all := sendings{all: map[publication]*sending{}}
		s, _ := all.begin(t.Context(), publication{}, p.produces.Begun()+1, time.Now())
		s.answer(context.Canceled)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errUnconfirmed)
		wantError(t, p.judge(ctx, s, theTopic), semel.DecideRetry, "nothing was sent to topic "+theTopic)
	})
}
