package calls_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

var errTest = errors.New("no")

var (
	first = store.CallStarted{Stands: true, Started: 1}
	again = store.CallStarted{Stands: true, Started: 2, Since: 59 * time.Minute}
	sent  = store.CallStarted{Stands: true, Started: 2, Since: 58 * time.Minute, Again: true}
	hour  = calls.Rule{Window: time.Hour, Timeout: time.Minute}
)

func TestNextStepOfACall(t *testing.T) {
	asks := hour
	asks.Asks = true
	known := again
	known.Finished = 1
	for name, is := range map[string]struct {
		started   store.CallStarted
		rule      calls.Rule
		ago, left time.Duration
		want      calls.Step
	}{
		"the_first_is_made": {first, hour, 0, 1, calls.Make},
		"E3_trap_T77_a_call_that_would_arrive_late_is_not_made":   {again, hour, 0, 1, calls.GiveUp},
		"E3_a_call_whose_key_is_known_is_made":                    {store.CallStarted{Started: 2, Since: 58 * time.Minute}, hour, 0, 1, calls.Make},
		"E3_time_since_the_store_was_asked_counts":                {store.CallStarted{Started: 2, Since: 58 * time.Minute}, hour, time.Minute, 1, calls.GiveUp},
		"E3_after_the_window_the_system_is_asked":                 {again, asks, 0, 1, calls.Ask},
		"E3_all_outcomes_are_known":                               {known, hour, 0, 1, calls.Make},
		"E3_a_key_that_is_known_forever":                          {again, calls.Rule{Window: calls.Always}, 0, 1, calls.Make},
		"E3_a_key_that_is_never_known":                            {store.CallStarted{Started: 2}, calls.Rule{Window: calls.Never}, 0, 1, calls.GiveUp},
		"law_5_B11_no_call_if_the_lease_may_have_ended":           {first, hour, 0, 0, calls.Leave},
		"law_5_B11_no_question_if_the_lease_may_have_ended":       {again, asks, 0, -1, calls.Leave},
		"E3_a_first_call_needs_no_window":                         {first, calls.Rule{Window: calls.Never}, 0, 1, calls.Make},
		"C12_sent_again_while_the_key_is_known":                   {sent, hour, 0, 1, calls.Make},
		"C12_E3_not_sent_again_if_it_would_arrive_late":           {sent, hour, time.Minute, 1, calls.Keep},
		"C12_E3_never_sent_again_if_keys_are_not_known":           {sent, calls.Rule{Window: calls.Never}, 0, 1, calls.Keep},
		"C12_law_1_never_sent_again_if_the_response_is_applied":   {sent, calls.Rule{Window: calls.Always, Once: true}, 0, 1, calls.Keep},
		"C12_law_5_not_sent_again_if_the_lease_may_have_ended":    {sent, calls.Rule{Window: calls.Never}, 0, 0, calls.Leave},
		"E3_a_third_call_after_one_known_and_one_unknown_outcome": {store.CallStarted{Started: 3, Finished: 1, Since: time.Hour}, hour, 0, 1, calls.GiveUp},
	} {
		t.Run(name, func(t *testing.T) {
			if got := new(calls.Claim).Next(is.started, is.rule, is.ago, is.left); got != is.want {
				t.Errorf("step %d, want %d", got, is.want)
			}
		})
	}
}

// unreadable is an error whose Unwrap panics.
type unreadable struct{}

func (unreadable) Error() string { return "unreadable" }
func (unreadable) Unwrap() error { panic("unreadable") }

func TestACallThatIsKeptIsDecided(t *testing.T) {
	t.Run("C12_E3_no_second_call_under_the_same_claim", func(t *testing.T) {
		var c calls.Claim
		rule := calls.Rule{Window: calls.Never}
		if got := c.Next(sent, rule, 0, 1); got != calls.Keep || c.Outcome() != store.CallDecided {
			t.Errorf("step %d, and the call is %v", got, c.Outcome())
		}
		if got := c.Next(sent, rule, 0, 1); got != calls.Nothing {
			t.Errorf("then step %d, want %d", got, calls.Nothing)
		}
	})
}

func TestOutcomeOfACall(t *testing.T) {
	for name, is := range map[string]struct {
		late bool
		err  error
		want store.CallOutcome
	}{
		"an_answer":                    {false, nil, store.CallDecided},
		"an_answer_that_came_too_late": {true, nil, store.CallUnknown},
		"an_error_that_says_no":        {false, errTest, store.CallUnknown},
		"a_failure":                    {false, semel.Retry(errTest), store.CallFailed},
		"a_failure_that_came_too_late": {true, semel.Retry(errTest), store.CallUnknown},
		"a_refusal":                    {false, semel.Permanent(errTest), store.CallDecided},
		"unknown":                      {false, semel.Unknown(errTest), store.CallUnknown},
		"an_error_that_panics":         {false, unreadable{}, store.CallUnknown},
		"unknown_within_a_failure":     {false, semel.Retry(semel.Unknown(errTest)), store.CallUnknown},
	} {
		t.Run("E3_"+name, func(t *testing.T) {
			var c calls.Claim
			c.Starting()
			c.Making()
			c.Made(is.late, is.err)
			if c.Outcome() != is.want {
				t.Errorf("%v, want %v", c.Outcome(), is.want)
			}
		})
	}
	t.Run("E3_a_second_call_under_a_claim_is_not_the_first", func(t *testing.T) {
		var c calls.Claim
		c.Starting()
		c.Making() // the attempt ended, because the lease seemed to have ended
		c.Starting()
		if c.Outcome() != store.CallUnknown || c.Next(first, calls.Rule{Window: calls.Never}, 0, 1) != calls.GiveUp {
			t.Errorf("%v; it is made", c.Outcome())
		}
		c.Making()
		if c.Made(false, semel.Retry(errTest)); c.Outcome() != store.CallUnknown {
			t.Errorf("%v after the second has failed", c.Outcome())
		}
		if c.Made(false, nil); c.Outcome() != store.CallDecided {
			t.Errorf("%v after it was answered", c.Outcome())
		}
	})
	t.Run("E3_an_unrecorded_effect_is_unknown_after_release", func(t *testing.T) {
		var c calls.Claim
		c.Starting()
		if c.Released() != store.CallNotMade {
			t.Errorf("%v before it is made", c.Released())
		}
		c.Making()
		c.Made(false, nil)
		c.Starting() // the response to the end of the claim was lost
		if c.Next(first, hour, 0, 1) != calls.Nothing || c.Outcome() != store.CallDecided || c.Released() != store.CallUnknown {
			t.Errorf("%v, released %v", c.Outcome(), c.Released())
		}
	})
	t.Run("E3_the_answer_of_the_system", func(t *testing.T) {
		var c calls.Claim
		if c.DidNotHappen(1) != calls.Make || c.DidNotHappen(0) != calls.Leave {
			t.Error("the answer that it did not happen is ignored")
		}
		if c.Happened(); c.Outcome() != store.CallDecided || c.Next(again, hour, 0, 1) != calls.Nothing {
			t.Errorf("%v after it happened", c.Outcome())
		}
	})
}
